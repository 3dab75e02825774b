// Made from /openapi.json: CLIENT_TYPES=write npm test -- test/client/types.test.ts makes it anew.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        PassBody: {
            /** @description What the next agent should do. */
            task: string;
            /** @description Result of the passing agent’s own work. */
            output?: {
                [key: string]: unknown;
            } | null;
            /** @description Metadata or history. */
            context?: {
                [key: string]: unknown;
            } | null;
            /** @description Rules or boundaries for the next agent. */
            constraints?: string | null;
            /** @description The inbox that the handoff is for. Any agent of the tenant can catch it there. */
            to?: string | null;
            /** @description Priority in that inbox: each step outweighs a minute of waiting. Needs `to`. */
            priority?: number | null;
            /** @description If true, a person must approve before anyone can catch the handoff. */
            require_human?: boolean | null;
            /** @description For how many seconds the handoff can be caught. */
            expires_in?: number | null;
            /** @description Seconds, from the catch on, within which the work must be done. */
            work_within?: number | null;
            /** @description Longest time between two heartbeats of the catcher, from the catch on, in seconds. */
            heartbeat_within?: number | null;
            /** @description Seconds until the handoff can be caught; less than expires_in. */
            delay?: number | null;
            /** @description Attempts in total. An attempt that fails, is declined or runs out of time gets a successor while any are left. */
            max_attempts?: number | null;
            /** @description Seconds until the second attempt can be caught; doubles with each further attempt, up to an hour. */
            retry_delay?: number | null;
            /** @description A JSON Schema (2020-12) that done’s output must satisfy: at most 16,384 bytes, and only the keywords that the documentation lists. */
            result_schema?: {
                [key: string]: unknown;
            } | null;
            /** @description Id of the handoff that this one is a part of. This agent must have caught it. */
            parent?: string | null;
        };
        /** @description The handoff is passed. */
        PassAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** @description The URL to catch it at. */
            pickup_url: string;
            /** @enum {string} */
            status: "pending";
            /** @description When the handoff was passed, by Redis’s clock. */
            created_at: string;
            /** @description The handoff can be caught until then. */
            expires_at: string;
            /** @description The handoff can be caught from then on; only if it was delayed. */
            available_at?: string;
            /** @description The page on which a person decides; only with require_human. */
            approval_url?: string;
        };
        /** @description Caught: the work is yours. */
        CatchAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** @enum {string} */
            status: "caught";
            /** @description As passed. */
            task: string;
            /** @description As passed; {} when none was given. */
            output: {
                [key: string]: unknown;
            };
            /** @description As passed; {} when none was given. */
            context: {
                [key: string]: unknown;
            };
            /** @description As passed; null when none was given. */
            constraints: string | null;
            /** @description When the handoff was passed, by Redis’s clock. */
            created_at: string;
            approval?: {
                state: "waiting" | "approved" | "rejected";
                /** @description When a person decided. */
                decided_at: string | null;
                /** @description Name of the person’s key. */
                decided_by: string | null;
                /** @description The person’s note. */
                note: string | null;
                /** @description Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            };
            /** @description The inbox that it was passed to. */
            to?: string;
            /** @description Deadline of the work. */
            work_expires_at?: string;
            /** @description As passed: seconds. */
            heartbeat_within?: number;
            /** @description Deadline of the next heartbeat. */
            heartbeat_expires_at?: string;
            /** @description Number of this attempt. */
            attempt?: number;
            /** @description Id of the previous attempt. */
            reissue_of?: string;
            /** @description Id of the handoff that this one is a part of. */
            parent?: string;
            /** @description Id of the first handoff of the line. */
            root?: string;
            /** @description Number of hops from the root to this handoff. */
            hops?: number;
            /** @description As passed: what the output given to done must satisfy. */
            result_schema?: {
                [key: string]: unknown;
            };
        };
        CatchNextBody: {
            /** @description Whose handoffs; by default the inbox that is called like the agent. */
            inbox?: string | null;
            /** @description How many at the most. */
            max?: number | null;
        };
        /** @description Caught: they are the asker’s. No items when nothing came in time. */
        CatchNextAnswer: {
            /** @description The earliest first, each as a catch by its id answers it; fewer than max when there are fewer, or when together they would be over 4 MiB. */
            items: {
                /** @description The handoff’s id: 25 URL-safe characters. */
                handoff_id: string;
                /** @enum {string} */
                status: "caught";
                /** @description As passed. */
                task: string;
                /** @description As passed; {} when none was given. */
                output: {
                    [key: string]: unknown;
                };
                /** @description As passed; {} when none was given. */
                context: {
                    [key: string]: unknown;
                };
                /** @description As passed; null when none was given. */
                constraints: string | null;
                /** @description When the handoff was passed, by Redis’s clock. */
                created_at: string;
                approval?: {
                    state: "waiting" | "approved" | "rejected";
                    /** @description When a person decided. */
                    decided_at: string | null;
                    /** @description Name of the person’s key. */
                    decided_by: string | null;
                    /** @description The person’s note. */
                    note: string | null;
                    /** @description Digest of the content that the person saw, if the decision sent it. */
                    digest?: string;
                };
                /** @description The inbox that it was passed to. */
                to?: string;
                /** @description Deadline of the work. */
                work_expires_at?: string;
                /** @description As passed: seconds. */
                heartbeat_within?: number;
                /** @description Deadline of the next heartbeat. */
                heartbeat_expires_at?: string;
                /** @description Number of this attempt. */
                attempt?: number;
                /** @description Id of the previous attempt. */
                reissue_of?: string;
                /** @description Id of the handoff that this one is a part of. */
                parent?: string;
                /** @description Id of the first handoff of the line. */
                root?: string;
                /** @description Number of hops from the root to this handoff. */
                hops?: number;
                /** @description As passed: what the output given to done must satisfy. */
                result_schema?: {
                    [key: string]: unknown;
                };
            }[];
        };
        /** @description What is in it. An inbox that was never used has nothing. */
        InboxAnswer: {
            inbox: string;
            /** @description How many can be caught now. */
            pending: number;
            /** @description When the oldest of them entered; null when there is none. */
            oldest_at: string | null;
            /** @description How many wait for a person. */
            waiting_approval: number;
        };
        HeartbeatBody: {
            /** @description Moves the work’s deadline to this many seconds from now, if that is later. */
            extend_by?: number | null;
            /** @description Progress of the work: a message, a percentage, or both. It replaces the previous report. */
            progress?: {
                message?: string | null;
                percent?: number | null;
            } | null;
        };
        /** @description The heartbeat is recorded. */
        HeartbeatAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** @enum {string} */
            status: "caught";
            /** @description Deadline of the work. */
            work_expires_at: string;
            /** @description Deadline of the next heartbeat; null without heartbeat_within. */
            heartbeat_expires_at: string | null;
            /** @description True if the passer wants the work stopped: fail or decline it, or go on and report it done. */
            cancel_requested: boolean;
            /** @description Why the passer cancels. */
            cancel_reason: string | null;
        };
        FailBody: {
            /** @description What went wrong; status shows it. */
            error: {
                message: string;
                code?: string | null;
                data?: {
                    [key: string]: unknown;
                } | null;
            };
            /** @description If false, no successor is made, even if attempts are left. */
            retry?: boolean | null;
        };
        /** @description The handoff has ended. */
        FailAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** @enum {string} */
            status: "failed";
            /** @description When the handoff ended. */
            ended_at: string;
            /** @description Id of the next attempt, the successor. */
            reissued_as?: string;
        };
        DeclineBody: {
            /** @description Why; status shows it. */
            reason: string;
        };
        /** @description The handoff has ended. */
        DeclineAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** @enum {string} */
            status: "declined";
            /** @description When the handoff ended. */
            ended_at: string;
            /** @description Id of the next attempt, the successor. */
            reissued_as?: string;
        };
        DoneBody: {
            /** @description Result of the work; status shows it as `result`. */
            output?: {
                [key: string]: unknown;
            } | null;
        };
        /** @description Done. */
        DoneAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** @enum {string} */
            status: "done";
            /** @description When the work was reported done. */
            completed_at: string;
        };
        CancelBody: {
            /** @description Why; heartbeats show it to the catcher. */
            reason?: string | null;
            /** @description If true, takes a caught handoff from its catcher. */
            force?: boolean | null;
        };
        CancelAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** @enum {string} */
            status: "cancelled";
            /** @description When the handoff ended. */
            ended_at: string;
        } | {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** @enum {string} */
            status: "caught";
            /** @description When cancelling was first requested. */
            cancel_requested_at: string;
        };
        ReissueBody: Record<string, never>;
        /** @description The handoff is passed. */
        ReissueAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** @description The URL to catch it at. */
            pickup_url: string;
            /** @enum {string} */
            status: "pending";
            /** @description When the handoff was passed, by Redis’s clock. */
            created_at: string;
            /** @description The handoff can be caught until then. */
            expires_at: string;
            /** @description The handoff can be caught from then on; only if it was delayed. */
            available_at?: string;
            /** @description The page on which a person decides; only with require_human. */
            approval_url?: string;
        };
        /** @description The handoff’s status. What hasn’t happened is null. Members that only some handoffs have are left out of the others. */
        StatusAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** @description Clients must tolerate statuses that they don’t know. */
            status: "pending" | "caught" | "done" | "failed" | "declined" | "cancelled" | "expired" | "rejected";
            require_human: boolean;
            /** @description When the handoff was passed, by Redis’s clock. */
            created_at: string;
            /** @description The handoff can be caught until then. */
            expires_at: string;
            caught_at: string | null;
            /** @description Name of the agent that caught it. */
            caught_by: string | null;
            completed_at: string | null;
            approval: {
                state: "waiting" | "approved" | "rejected";
                /** @description When a person decided. */
                decided_at: string | null;
                /** @description Name of the person’s key. */
                decided_by: string | null;
                /** @description The person’s note. */
                note: string | null;
                /** @description Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            } | null;
            /** @description The output as sent with done. */
            result: {
                [key: string]: unknown;
            } | null;
            /** @description The inbox that it was passed to. */
            to?: string;
            /** @description Its priority in that inbox. */
            priority?: number;
            /** @description The handoff can be caught from then on; only if it was delayed. */
            available_at?: string;
            /** @description Deadline of the work. */
            work_expires_at?: string;
            /** @description Deadline of the next heartbeat. */
            heartbeat_expires_at?: string;
            /** @description The catcher’s latest progress report. */
            progress?: {
                message?: string;
                percent?: number;
                at: string;
            };
            /** @description When the passer asked the catcher to stop. */
            cancel_requested_at?: string;
            /** @description Why the passer cancels. */
            cancel_reason?: string;
            /** @description When the handoff ended. */
            ended_at?: string;
            /** @description The agent that ended the handoff; null if it expired. */
            ended_by?: string | null;
            /** @description As sent with fail. */
            error?: {
                [key: string]: unknown;
            };
            /** @description As sent with decline. */
            reason?: string;
            /** @description The deadline that was missed. */
            expired_because?: "not_caught" | "not_done" | "stalled";
            /** @description Number of this attempt. */
            attempt?: number;
            /** @description Id of the previous attempt. */
            reissue_of?: string;
            /** @description Id of the next attempt, the successor; null until it is made. */
            reissued_as?: string | null;
            /** @description Id of the handoff that this one is a part of. */
            parent?: string;
            /** @description Id of the first handoff of the line. */
            root?: string;
            /** @description Number of hops from the root to this handoff. */
            hops?: number;
        };
        BatchBody: {
            /** @description They run side by side, in no order. */
            operations: {
                /** @description What to do; as the request of that name does it. */
                op: "pass" | "catch" | "done" | "status" | "heartbeat" | "fail" | "decline" | "cancel";
                /** @description The handoff’s id; required but for pass, which takes none. */
                id?: string | null;
                /** @description The body that the single request takes; none for catch and status. */
                body?: {
                    [key: string]: unknown;
                } | null;
                /** @description Its Idempotency-Key. */
                idempotency_key?: string | null;
            }[];
        };
        /** @description Each operation’s own answer. One that fails touches no other. */
        BatchAnswer: {
            /** @description One for each operation, in the order in which they were asked. */
            results: {
                /** @description The status that the single request would have had. */
                status: number;
                /** @description Its answer, or its problem. */
                body: {
                    [key: string]: unknown;
                };
                /**
                 * @description There when its idempotency_key was recognised.
                 * @enum {boolean}
                 */
                replayed?: true;
            }[];
        };
        /** @description Handoffs that wait for approval, oldest first. */
        ListApprovalsAnswer: {
            /** @description May be fewer than `limit`, or none, even if there is a next_cursor. */
            items: {
                /** @description The handoff’s id: 25 URL-safe characters. */
                handoff_id: string;
                /** @description As passed, truncated to 1,000 characters. */
                task: string;
                /**
                 * @description Only on a truncated task; /api/approvals/{id} has the full text.
                 * @enum {boolean}
                 */
                task_truncated?: true;
                /** @description When the handoff was passed, by Redis’s clock. */
                created_at: string;
                /** @description The handoff can be caught until then. */
                expires_at: string;
                /** @description Name of the agent that passed the handoff. */
                passed_by: string;
                /** @description The handoff can be caught from then on; only if it was delayed. */
                available_at?: string;
            }[];
            /** @description The cursor of the next page; null on the last one. */
            next_cursor: string | null;
        };
        /** @description The complete handoff. */
        InspectApprovalAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "pending" | "caught" | "done" | "failed" | "declined" | "cancelled" | "expired" | "rejected";
            /** @description As passed. */
            task: string | null;
            /** @description As passed; null once deleted. */
            output: {
                [key: string]: unknown;
            } | null;
            /** @description As passed; null once deleted. */
            context: {
                [key: string]: unknown;
            } | null;
            /** @description As passed. */
            constraints: string | null;
            /** @description When the handoff was passed, by Redis’s clock. */
            created_at: string;
            /** @description The handoff can be caught until then. */
            expires_at: string;
            /** @description Name of the agent that passed the handoff. */
            passed_by: string;
            approval: {
                state: "waiting" | "approved" | "rejected";
                /** @description When a person decided. */
                decided_at: string | null;
                /** @description Name of the person’s key. */
                decided_by: string | null;
                /** @description The person’s note. */
                note: string | null;
                /** @description Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            };
            /** @description The inbox that it was passed to. */
            to?: string;
            /** @description Its priority in that inbox. */
            priority?: number;
            /** @description As passed. */
            parent?: string;
            /** @description As passed: seconds. */
            work_within?: number;
            /** @description As passed: seconds. */
            heartbeat_within?: number;
            /** @description As passed. */
            max_attempts?: number;
            /** @description The handoff can be caught from then on; only if it was delayed. */
            available_at?: string;
            /** @description Digest of what was passed. Send it with approve or reject: the decision is refused if the content is different by then. */
            digest?: string;
            /** @description As passed. */
            result_schema?: {
                [key: string]: unknown;
            };
        };
        ApproveBody: {
            /** @description For the agent that catches the handoff. */
            note?: string | null;
            /** @description The digest that /api/approvals/{id} answered; the decision is refused if it doesn’t match. */
            digest?: string | null;
        };
        /** @description The decision is recorded. */
        ApproveAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "pending" | "rejected";
            approval: {
                state: "waiting" | "approved" | "rejected";
                /** @description When a person decided. */
                decided_at: string | null;
                /** @description Name of the person’s key. */
                decided_by: string | null;
                /** @description The person’s note. */
                note: string | null;
                /** @description Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            };
        };
        RejectBody: {
            /** @description The reason. */
            note: string;
            /** @description The digest that /api/approvals/{id} answered; the decision is refused if it doesn’t match. */
            digest?: string | null;
        };
        /** @description The decision is recorded. */
        RejectAnswer: {
            /** @description The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "pending" | "rejected";
            approval: {
                state: "waiting" | "approved" | "rejected";
                /** @description When a person decided. */
                decided_at: string | null;
                /** @description Name of the person’s key. */
                decided_by: string | null;
                /** @description The person’s note. */
                note: string | null;
                /** @description Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            };
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type PassBody = components['schemas']['PassBody'];
export type PassAnswer = components['schemas']['PassAnswer'];
export type CatchAnswer = components['schemas']['CatchAnswer'];
export type CatchNextBody = components['schemas']['CatchNextBody'];
export type CatchNextAnswer = components['schemas']['CatchNextAnswer'];
export type InboxAnswer = components['schemas']['InboxAnswer'];
export type HeartbeatBody = components['schemas']['HeartbeatBody'];
export type HeartbeatAnswer = components['schemas']['HeartbeatAnswer'];
export type FailBody = components['schemas']['FailBody'];
export type FailAnswer = components['schemas']['FailAnswer'];
export type DeclineBody = components['schemas']['DeclineBody'];
export type DeclineAnswer = components['schemas']['DeclineAnswer'];
export type DoneBody = components['schemas']['DoneBody'];
export type DoneAnswer = components['schemas']['DoneAnswer'];
export type CancelBody = components['schemas']['CancelBody'];
export type CancelAnswer = components['schemas']['CancelAnswer'];
export type ReissueBody = components['schemas']['ReissueBody'];
export type ReissueAnswer = components['schemas']['ReissueAnswer'];
export type StatusAnswer = components['schemas']['StatusAnswer'];
export type BatchBody = components['schemas']['BatchBody'];
export type BatchAnswer = components['schemas']['BatchAnswer'];
export type ListApprovalsAnswer = components['schemas']['ListApprovalsAnswer'];
export type InspectApprovalAnswer = components['schemas']['InspectApprovalAnswer'];
export type ApproveBody = components['schemas']['ApproveBody'];
export type ApproveAnswer = components['schemas']['ApproveAnswer'];
export type RejectBody = components['schemas']['RejectBody'];
export type RejectAnswer = components['schemas']['RejectAnswer'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
