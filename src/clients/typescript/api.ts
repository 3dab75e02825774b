// Made from /openapi.json: CLIENT_TYPES=write npm run test:smoke -- test/others/client-types.smoke.test.ts makes it anew.
export interface components {
    schemas: {
        PassBody: {
            /** What the next agent should do. */
            task: string;
            /** Result of the passing agent’s own work. */
            output?: { [key: string]: unknown } | null;
            /** Metadata or history. */
            context?: { [key: string]: unknown } | null;
            /** Rules or boundaries for the next agent. */
            constraints?: string | null;
            /** The inbox that the handoff is for. Any agent of the tenant can catch it there. */
            to?: string | null;
            /** Priority in that inbox: each step outweighs a minute of waiting. Needs `to`. */
            priority?: number | null;
            /** Names and values by which lists and events can be filtered: 1 to 8. A name is 1 to 32 of A-Z a-z 0-9 . _ -, a value 1 to 64 of these and : / @. */
            labels?: { [key: string]: string } | null;
            /** If true, a person must approve before anyone can catch the handoff. */
            require_human?: boolean | null;
            /** For how many seconds the handoff can be caught. */
            expires_in?: number | null;
            /** Seconds, from the catch on, within which the work must be done. */
            work_within?: number | null;
            /** Longest time between two heartbeats of the catcher, from the catch on, in seconds. */
            heartbeat_within?: number | null;
            /** Seconds until the handoff can be caught; less than expires_in. */
            delay?: number | null;
            /** Attempts in total. An attempt that fails, is declined or runs out of time gets a successor while any are left. */
            max_attempts?: number | null;
            /** Seconds until the second attempt can be caught; doubles with each further attempt, up to an hour. */
            retry_delay?: number | null;
            /** A JSON Schema (2020-12) that done’s output must satisfy: at most 16,384 bytes, and only the keywords that the documentation lists. */
            result_schema?: { [key: string]: unknown } | null;
            /** Id of the handoff that this one is a part of. This agent must have caught it. */
            parent?: string | null;
            /** Ids of 1 to 100 handoffs that must end first: until then nobody can catch this one. Its catcher gets their results. */
            after?: string[] | null;
            /** What is needed of those: that all are `done` (one that ends otherwise cancels this handoff), or only that they have `ended`. Needs `after`. */
            after_need?: "done" | "ended" | null;
            /** The address that is told what becomes of the handoff. */
            callback?: {
                /** Like a webhook’s. */
                url: string;
                /** What is told; without it how the handoff ended, and what its catcher asks. */
                types?: ("handoff.caught" | "handoff.done" | "handoff.failed" | "handoff.declined" | "handoff.cancelled" | "handoff.expired" | "handoff.rejected" | "handoff.asked" | "handoff.reissued")[] | null;
                /** Sent as a bearer token. No answer shows it. */
                token?: string | null;
                /** Whether the result, or the error, is sent. */
                result?: boolean | null;
            } | null;
        };
        /** The handoff is passed. */
        PassAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** The URL to catch it at. */
            pickup_url: string;
            status: "pending";
            /** When the handoff was passed, by Redis’s clock. */
            created_at: string;
            /** The handoff can be caught until then. */
            expires_at: string;
            /** The handoff can be caught from then on; only if it was delayed. */
            available_at?: string;
            /** How many handoffs that it comes after have not ended yet. */
            blocked_by?: number;
            /** The page on which a person decides; only with require_human. */
            approval_url?: string;
        };
        /** Caught: the work is yours. */
        CatchAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "caught";
            /** As passed. */
            task: string;
            /** As passed; {} when none was given. */
            output: { [key: string]: unknown };
            /** As passed; {} when none was given. */
            context: { [key: string]: unknown };
            /** As passed; null when none was given. */
            constraints: string | null;
            /** When the handoff was passed, by Redis’s clock. */
            created_at: string;
            approval?: {
                state: "waiting" | "approved" | "rejected";
                /** When a person decided. */
                decided_at: string | null;
                /** Name of the person’s key. */
                decided_by: string | null;
                /** The person’s note. */
                note: string | null;
                /** Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            };
            /** The inbox that it was passed to. */
            to?: string;
            /** The labels that it was passed with. */
            labels?: { [key: string]: string };
            /** Deadline of the work; null while a question is open. */
            work_expires_at?: string | null;
            /** As passed: seconds. */
            heartbeat_within?: number;
            /** Deadline of the next heartbeat; null while a question is open. */
            heartbeat_expires_at?: string | null;
            /** Number of this attempt. */
            attempt?: number;
            /** Id of the previous attempt. */
            reissue_of?: string;
            /** Id of the handoff that this one is a part of. */
            parent?: string;
            /** Id of the first handoff of the line. */
            root?: string;
            /** Number of hops from the root to this handoff. */
            hops?: number;
            /** The latest checkpoint that a catcher of this work gave. */
            checkpoint?: { [key: string]: unknown };
            /** When the latest checkpoint was given. */
            checkpoint_at?: string;
            /** The agent that gave the checkpoint. */
            checkpoint_by?: string;
            /** The schedule that it is a run of. */
            schedule?: string;
            /** For which time that ran. */
            scheduled_for?: string;
            /** As passed: what the output given to done must satisfy. */
            result_schema?: { [key: string]: unknown };
            /** What it comes after, in the order passed. */
            after?: {
                /** As passed. */
                handoff_id: string;
                /** Its last attempt, if that is another. */
                last?: string;
                /** How it ended. */
                status: string;
                /** The output given to done. */
                result?: { [key: string]: unknown } | null;
                /** The result is left out: together they would be over 4 MiB, or it is gone. */
                result_omitted?: true;
            }[];
        };
        CatchNextBody: {
            /** The inbox to catch from; by default the one with the agent’s own name. */
            inbox?: string | null;
            /** Instead of inbox: catch from the first of these, in this order, that has something. All items of the answer are from one inbox. */
            inboxes?: string[] | null;
            /** Largest number of handoffs to catch. */
            max?: number | null;
        };
        /** Caught: the work is yours. items is empty if nothing came in time. */
        CatchNextAnswer: {
            /** In order of their turn, each as in the answer of a catch by id. Fewer than max if the inbox has fewer, or if the answer would be larger than 4 MiB. */
            items: {
                /** The handoff’s id: 25 URL-safe characters. */
                handoff_id: string;
                status: "caught";
                /** As passed. */
                task: string;
                /** As passed; {} when none was given. */
                output: { [key: string]: unknown };
                /** As passed; {} when none was given. */
                context: { [key: string]: unknown };
                /** As passed; null when none was given. */
                constraints: string | null;
                /** When the handoff was passed, by Redis’s clock. */
                created_at: string;
                approval?: {
                    state: "waiting" | "approved" | "rejected";
                    /** When a person decided. */
                    decided_at: string | null;
                    /** Name of the person’s key. */
                    decided_by: string | null;
                    /** The person’s note. */
                    note: string | null;
                    /** Digest of the content that the person saw, if the decision sent it. */
                    digest?: string;
                };
                /** The inbox that it was passed to. */
                to?: string;
                /** The labels that it was passed with. */
                labels?: { [key: string]: string };
                /** Deadline of the work; null while a question is open. */
                work_expires_at?: string | null;
                /** As passed: seconds. */
                heartbeat_within?: number;
                /** Deadline of the next heartbeat; null while a question is open. */
                heartbeat_expires_at?: string | null;
                /** Number of this attempt. */
                attempt?: number;
                /** Id of the previous attempt. */
                reissue_of?: string;
                /** Id of the handoff that this one is a part of. */
                parent?: string;
                /** Id of the first handoff of the line. */
                root?: string;
                /** Number of hops from the root to this handoff. */
                hops?: number;
                /** The latest checkpoint that a catcher of this work gave. */
                checkpoint?: { [key: string]: unknown };
                /** When the latest checkpoint was given. */
                checkpoint_at?: string;
                /** The agent that gave the checkpoint. */
                checkpoint_by?: string;
                /** The schedule that it is a run of. */
                schedule?: string;
                /** For which time that ran. */
                scheduled_for?: string;
                /** As passed: what the output given to done must satisfy. */
                result_schema?: { [key: string]: unknown };
                /** What it comes after, in the order passed. */
                after?: {
                    /** As passed. */
                    handoff_id: string;
                    /** Its last attempt, if that is another. */
                    last?: string;
                    /** How it ended. */
                    status: string;
                    /** The output given to done. */
                    result?: { [key: string]: unknown } | null;
                    /** The result is left out: together they would be over 4 MiB, or it is gone. */
                    result_omitted?: true;
                }[];
            }[];
        };
        /** The state of the inbox. One that was never used is empty. */
        InboxAnswer: {
            inbox: string;
            /** Number of handoffs that can be caught now. */
            pending: number;
            /** When the oldest of them entered the inbox; null if there is none. */
            oldest_at: string | null;
            /** Number of handoffs that wait for approval. */
            waiting_approval: number;
            /** Number of handoffs that can be caught later. */
            delayed: number;
            /** Number of handoffs that wait for others. */
            blocked: number;
            /** Number of handoffs that are caught. */
            caught: number;
            /** Number of handoffs in the list of those that failed. */
            failed: number;
            /** Number of requests that wait for its handoffs, at all replicas; at most 10 s old. */
            listening: number;
            /** Whether nothing can be caught from the inbox now. */
            paused: boolean;
            /** How many of its handoffs may be caught for the inbox to give more; null for any number. */
            max_caught: number | null;
            /** How many may be pending for it to take more; null for any number. */
            max_pending: number | null;
        };
        /** What is left out stays as it is. */
        SetInboxBody: {
            /** true: nothing can be caught from the inbox until it is false again. */
            paused?: boolean;
            /** Catch from the inbox only while fewer of its handoffs are caught; null removes the limit. */
            max_caught?: number | null;
            /** Refuse to pass to the inbox while this many are pending; null removes the limit. */
            max_pending?: number | null;
        };
        /** The state of the inbox. One that was never used is empty. */
        SetInboxAnswer: {
            inbox: string;
            /** Number of handoffs that can be caught now. */
            pending: number;
            /** When the oldest of them entered the inbox; null if there is none. */
            oldest_at: string | null;
            /** Number of handoffs that wait for approval. */
            waiting_approval: number;
            /** Number of handoffs that can be caught later. */
            delayed: number;
            /** Number of handoffs that wait for others. */
            blocked: number;
            /** Number of handoffs that are caught. */
            caught: number;
            /** Number of handoffs in the list of those that failed. */
            failed: number;
            /** Number of requests that wait for its handoffs, at all replicas; at most 10 s old. */
            listening: number;
            /** Whether nothing can be caught from the inbox now. */
            paused: boolean;
            /** How many of its handoffs may be caught for the inbox to give more; null for any number. */
            max_caught: number | null;
            /** How many may be pending for it to take more; null for any number. */
            max_pending: number | null;
        };
        /** The tenant’s inboxes that hold something or have settings. */
        ListInboxesAnswer: {
            /** By name. May be fewer than `limit`, or none, even if there is a next_cursor. */
            items: {
                inbox: string;
                /** Number of handoffs that can be caught now. */
                pending: number;
                /** When the oldest of them entered the inbox; null if there is none. */
                oldest_at: string | null;
                /** Number of handoffs that wait for approval. */
                waiting_approval: number;
                /** Number of handoffs that can be caught later. */
                delayed: number;
                /** Number of handoffs that wait for others. */
                blocked: number;
                /** Number of handoffs that are caught. */
                caught: number;
                /** Number of handoffs in the list of those that failed. */
                failed: number;
                /** Number of requests that wait for its handoffs, at all replicas; at most 10 s old. */
                listening: number;
                /** Whether nothing can be caught from the inbox now. */
                paused: boolean;
                /** How many of its handoffs may be caught for the inbox to give more; null for any number. */
                max_caught: number | null;
                /** How many may be pending for it to take more; null for any number. */
                max_pending: number | null;
            }[];
            /** The cursor of the next page; null on the last one. */
            next_cursor: string | null;
        };
        /** Who has handoffs of the inbox caught, waits for some, or asked for some within a minute. */
        WorkersAnswer: {
            /** The one that was heard of last first; at most 1,000. */
            items: {
                /** Name of the agent. */
                agent: string;
                /** What it calls itself (Handoff-Worker); null if it says nothing. */
                worker: string | null;
                /** Number of its requests that wait for this inbox. */
                waiting: number;
                /** Number of handoffs of this inbox that it has caught. */
                caught: number;
                /** When it was heard of last. */
                last_seen_at: string;
                /** When it last caught one of its handoffs, as far as is known. */
                last_caught_at: string | null;
            }[];
            /** Whether there are more. */
            more: boolean;
        };
        DoneBody: {
            /** Result of the work; status shows it as `result`. */
            output?: { [key: string]: unknown } | null;
        };
        /** Done. */
        DoneAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "done";
            /** When the work was reported done. */
            completed_at: string;
        };
        /** The handoff’s status. What hasn’t happened is null. Members that only some handoffs have are left out of the others. */
        StatusAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** Clients must tolerate statuses that they don’t know. */
            status: "pending" | "caught" | "done" | "failed" | "declined" | "cancelled" | "expired" | "rejected";
            require_human: boolean;
            /** When the handoff was passed, by Redis’s clock. */
            created_at: string;
            /** The handoff can be caught until then. */
            expires_at: string;
            caught_at: string | null;
            /** Name of the agent that caught it. */
            caught_by: string | null;
            completed_at: string | null;
            approval: {
                state: "waiting" | "approved" | "rejected";
                /** When a person decided. */
                decided_at: string | null;
                /** Name of the person’s key. */
                decided_by: string | null;
                /** The person’s note. */
                note: string | null;
                /** Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            } | null;
            /** The output as sent with done. */
            result: { [key: string]: unknown } | null;
            /** The inbox that it was passed to. */
            to?: string;
            /** Its priority in that inbox. */
            priority?: number;
            /** The labels that it was passed with. */
            labels?: { [key: string]: string };
            /** The handoff can be caught from then on; only if it was delayed. */
            available_at?: string;
            /** Its callback. */
            callback?: {
                /** Without its query. */
                url: string;
                /** How many are to be delivered. */
                pending: number;
                delivered: number;
                /** How many could not be delivered. */
                failed: number;
                /** How the address answered last. */
                last_status: number | null;
                /** Why it gave no answer. */
                last_error: string | null;
                /** When that was. */
                last_at: string | null;
            };
            /** How many handoffs that it comes after have not ended yet. */
            blocked_by?: number;
            /** Deadline of the work; null while a question is open. */
            work_expires_at?: string | null;
            /** Deadline of the next heartbeat; null while a question is open. */
            heartbeat_expires_at?: string | null;
            /** When the catcher’s last heartbeat came. */
            heartbeat_at?: string;
            /** What its worker calls itself (Handoff-Worker). */
            worker?: string;
            /** When the latest checkpoint was given. */
            checkpoint_at?: string;
            /** The catcher’s latest progress report. */
            progress?: {
                message?: string;
                percent?: number;
                at: string;
            };
            /** When the passer asked the catcher to stop. */
            cancel_requested_at?: string;
            /** Why it is cancelled. */
            cancel_reason?: string;
            /** When the handoff ended. */
            ended_at?: string;
            /** The agent that ended the handoff; null if none did. */
            ended_by?: string | null;
            /** As sent with fail. */
            error?: { [key: string]: unknown };
            /** As sent with decline. */
            reason?: string;
            /** What was missed: not_decided if a person still had to decide. */
            expired_because?: "not_caught" | "not_decided" | "not_done" | "stalled";
            /** Its catcher’s latest question. */
            ask?: {
                /** The question’s id. */
                ask_id: string;
                /** How it stands. */
                state: "open" | "answered" | "expired" | "withdrawn";
                /** Who is asked: a person, or the agent that passed the handoff. */
                of: "person" | "passer";
                /** When it was asked. */
                asked_at: string;
                answered_at: string | null;
                /** Who answered. */
                answered_by: string | null;
            };
            /** Number of this attempt. */
            attempt?: number;
            /** Id of the previous attempt. */
            reissue_of?: string;
            /** Id of the next attempt, the successor; null until it is made. */
            reissued_as?: string | null;
            /** Id of the handoff that this one is a part of. */
            parent?: string;
            /** Id of the first handoff of the line. */
            root?: string;
            /** Number of hops from the root to this handoff. */
            hops?: number;
            /** The schedule that it is a run of. */
            schedule?: string;
            /** For which time that ran. */
            scheduled_for?: string;
            /** Only with explain=true, and while it is pending: all that it waits for. */
            waits_for?: {
                /** A person has yet to decide; its delay isn’t over; it comes after others; its inbox is paused, or has as many caught as may be; others are caught before it; nobody works on its inbox. */
                reason: "approval" | "delay" | "after" | "paused" | "max_caught" | "ahead" | "no_listener";
                /** Of a delay: its end. Of an approval: by when. */
                until?: string;
                /** How many it comes after that have not ended. */
                blocked_by?: number;
                /** How many of the inbox are caught. */
                caught?: number;
                /** How many may be. */
                max?: number;
                /** How many the inbox gives before it. */
                ahead?: number;
                /** There are more ahead than that. */
                at_least?: true;
            }[];
        };
        /** A tenant’s handoffs, like AVHdDBR3Ox_T_H9gltuUjYVhg. Members that only some handoffs have are left out of the others. */
        ListAnswer: {
            /** May be fewer than `limit`, or none, even if there is a next_cursor. */
            items: {
                /** The handoff’s id: 25 URL-safe characters. */
                handoff_id: string;
                /** Clients must tolerate statuses that they don’t know. */
                status: "pending" | "caught" | "done" | "failed" | "declined" | "cancelled" | "expired" | "rejected";
                require_human: boolean;
                /** The agent that passed it. */
                passed_by: string;
                /** When the handoff was passed, by Redis’s clock. */
                created_at: string;
                /** The handoff can be caught until then. */
                expires_at: string;
                /** The inbox that it was passed to. */
                to?: string;
                /** Its priority in that inbox. */
                priority?: number;
                /** The labels that it was passed with. */
                labels?: { [key: string]: string };
                /** Id of the handoff that this one is a part of. */
                parent?: string;
                /** Number of this attempt. */
                attempt?: number;
                /** As passed. */
                max_attempts?: number;
                /** The handoff can be caught from then on; only if it was delayed. */
                available_at?: string;
                /** How many handoffs that it comes after have not ended yet. */
                blocked_by?: number;
                /** The schedule that it is a run of. */
                schedule?: string;
                /** For which time that ran. */
                scheduled_for?: string;
                approval?: {
                    state: "waiting" | "approved" | "rejected";
                    /** When a person decided. */
                    decided_at: string | null;
                    /** Name of the person’s key. */
                    decided_by: string | null;
                    /** The person’s note. */
                    note: string | null;
                    /** Digest of the content that the person saw, if the decision sent it. */
                    digest?: string;
                } | null;
                /** The agent that caught it. */
                caught_by?: string;
                caught_at?: string;
                /** Deadline of the work; null while a question is open. */
                work_expires_at?: string | null;
                /** Deadline of the next heartbeat; null while a question is open. */
                heartbeat_expires_at?: string | null;
                /** When the catcher’s last heartbeat came. */
                heartbeat_at?: string;
                /** What its worker calls itself (Handoff-Worker). */
                worker?: string;
                /** When the latest checkpoint was given. */
                checkpoint_at?: string;
                /** The catcher’s latest progress report. */
                progress?: {
                    message?: string;
                    percent?: number;
                    at: string;
                };
                /** When the passer asked the catcher to stop. */
                cancel_requested_at?: string;
                /** Its open question. */
                ask?: {
                    /** The question’s id. */
                    ask_id: string;
                    /** When it was asked. */
                    asked_at: string;
                };
                completed_at?: string;
                /** When the handoff ended. */
                ended_at?: string;
                /** The agent that ended the handoff; null if none did. */
                ended_by?: string | null;
                /** Id of its successor. */
                reissued_as?: string;
                /** As sent with fail, without its data. */
                error?: {
                    /** Truncated to 1,000 characters. */
                    message: string;
                    code?: string;
                };
                /** As sent with decline, truncated to 1,000 characters. */
                reason?: string;
                /** What was missed: not_decided if a person still had to decide. */
                expired_because?: "not_caught" | "not_decided" | "not_done" | "stalled";
                /** The first line of the task, up to 100 characters; only for keys with the scope operate or read. */
                title?: string;
                /** Truncated to 200 characters; only for keys with the scope operate. */
                task?: string;
                /** Only on a truncated task. */
                task_truncated?: true;
            }[];
            /** The cursor of the next page; null on the last one. */
            next_cursor: string | null;
        };
        /** A label’s values, each with what became of the works that were passed with it. The value that was passed last first. */
        ListRunsAnswer: {
            /** May be fewer than `limit`, or none, even if there is a next_cursor. */
            items: {
                /** The label’s value. */
                value: string;
                /** How many works are pending, caught, or between two attempts. */
                live: number;
                /** How many are done. */
                done: number;
                /** How many failed, as state=failed lists them. */
                failed: number;
                /** How many were cancelled or rejected, or expired without an inbox and without a catch. */
                other: number;
                /** When the first was passed. */
                first_at: string;
                /** When the last was passed. */
                last_at: string;
            }[];
            /** The cursor of the next page; null on the last one. */
            next_cursor: string | null;
        };
        /** All of the handoff. What is gone is null. */
        GetAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** Clients must tolerate statuses that they don’t know. */
            status: "pending" | "caught" | "done" | "failed" | "declined" | "cancelled" | "expired" | "rejected";
            require_human: boolean;
            /** When the handoff was passed, by Redis’s clock. */
            created_at: string;
            /** The handoff can be caught until then. */
            expires_at: string;
            caught_at: string | null;
            /** Name of the agent that caught it. */
            caught_by: string | null;
            completed_at: string | null;
            approval: {
                state: "waiting" | "approved" | "rejected";
                /** When a person decided. */
                decided_at: string | null;
                /** Name of the person’s key. */
                decided_by: string | null;
                /** The person’s note. */
                note: string | null;
                /** Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            } | null;
            /** The inbox that it was passed to. */
            to?: string;
            /** Its priority in that inbox. */
            priority?: number;
            /** The labels that it was passed with. */
            labels?: { [key: string]: string };
            /** The handoff can be caught from then on; only if it was delayed. */
            available_at?: string;
            /** Its callback. */
            callback?: {
                /** Without its query. */
                url: string;
                /** How many are to be delivered. */
                pending: number;
                delivered: number;
                /** How many could not be delivered. */
                failed: number;
                /** How the address answered last. */
                last_status: number | null;
                /** Why it gave no answer. */
                last_error: string | null;
                /** When that was. */
                last_at: string | null;
            };
            /** How many handoffs that it comes after have not ended yet. */
            blocked_by?: number;
            /** Deadline of the work; null while a question is open. */
            work_expires_at?: string | null;
            /** Deadline of the next heartbeat; null while a question is open. */
            heartbeat_expires_at?: string | null;
            /** When the catcher’s last heartbeat came. */
            heartbeat_at?: string;
            /** What its worker calls itself (Handoff-Worker). */
            worker?: string;
            /** When the latest checkpoint was given. */
            checkpoint_at?: string;
            /** The catcher’s latest progress report. */
            progress?: {
                message?: string;
                percent?: number;
                at: string;
            };
            /** When the passer asked the catcher to stop. */
            cancel_requested_at?: string;
            /** Why it is cancelled. */
            cancel_reason?: string;
            /** When the handoff ended. */
            ended_at?: string;
            /** The agent that ended the handoff; null if none did. */
            ended_by?: string | null;
            /** As sent with decline. */
            reason?: string;
            /** What was missed: not_decided if a person still had to decide. */
            expired_because?: "not_caught" | "not_decided" | "not_done" | "stalled";
            /** Its catcher’s latest question. */
            ask?: {
                /** The question’s id. */
                ask_id: string;
                /** How it stands. */
                state: "open" | "answered" | "expired" | "withdrawn";
                /** Who is asked: a person, or the agent that passed the handoff. */
                of: "person" | "passer";
                /** When it was asked. */
                asked_at: string;
                answered_at: string | null;
                /** Who answered. */
                answered_by: string | null;
            };
            /** Number of this attempt. */
            attempt?: number;
            /** Id of the previous attempt. */
            reissue_of?: string;
            /** Id of the next attempt, the successor; null until it is made. */
            reissued_as?: string | null;
            /** Id of the handoff that this one is a part of. */
            parent?: string;
            /** Id of the first handoff of the line. */
            root?: string;
            /** Number of hops from the root to this handoff. */
            hops?: number;
            /** The schedule that it is a run of. */
            schedule?: string;
            /** For which time that ran. */
            scheduled_for?: string;
            /** The agent that passed it. */
            passed_by: string;
            /** As passed. */
            task?: string | null;
            /** task is left out: all texts together would be larger than 4 MiB. */
            task_omitted?: true;
            /** As passed; null once deleted. */
            output?: { [key: string]: unknown } | null;
            /** output is left out: all texts together would be larger than 4 MiB. */
            output_omitted?: true;
            /** As passed; null once deleted. */
            context?: { [key: string]: unknown } | null;
            /** context is left out: all texts together would be larger than 4 MiB. */
            context_omitted?: true;
            /** As passed. */
            constraints?: string | null;
            /** constraints is left out: all texts together would be larger than 4 MiB. */
            constraints_omitted?: true;
            /** As given to done; null if there is none. */
            result?: { [key: string]: unknown } | null;
            /** result is left out: all texts together would be larger than 4 MiB. */
            result_omitted?: true;
            /** As sent with fail; null if there is none. */
            error?: { [key: string]: unknown } | null;
            /** error is left out: all texts together would be larger than 4 MiB. */
            error_omitted?: true;
            /** What its catcher asked last; null if it asked nothing. */
            question?: string | null;
            /** question is left out: all texts together would be larger than 4 MiB. */
            question_omitted?: true;
            /** The answer to that question, any JSON; null if there is none. */
            answer?: unknown;
            /** answer is left out: all texts together would be larger than 4 MiB. */
            answer_omitted?: true;
            /** The latest checkpoint; null if there is none. */
            checkpoint?: { [key: string]: unknown } | null;
            /** checkpoint is left out: all texts together would be larger than 4 MiB. */
            checkpoint_omitted?: true;
            /** The agent that gave the checkpoint. */
            checkpoint_by?: string;
            /** The last 50 attempts of this work, in their order. */
            attempts: {
                /** The handoff’s id: 25 URL-safe characters. */
                handoff_id: string;
                attempt: number;
                status: "pending" | "caught" | "done" | "failed" | "declined" | "cancelled" | "expired" | "rejected";
                /** What its worker called itself (Handoff-Worker); null if it said nothing. */
                worker: string | null;
                /** Null while it hasn’t ended. */
                ended_at: string | null;
            }[];
        };
        WaitBody: {
            /** Ids of handoffs. A repeated one is answered each time. */
            ids: string[];
            /** What to wait for: that all have ended for good (default), or any. */
            until?: "all" | "any" | null;
            /** Whether the items have results; true by default. */
            results?: boolean | null;
        };
        /** What is true now. */
        WaitAnswer: {
            /** What has become of each, in the order of ids: the status of its last attempt. */
            items: ({
                /** The handoff’s id: 25 URL-safe characters. */
                handoff_id: string;
                /** Clients must tolerate statuses that they don’t know. */
                status: "pending" | "caught" | "done" | "failed" | "declined" | "cancelled" | "expired" | "rejected";
                require_human: boolean;
                /** When the handoff was passed, by Redis’s clock. */
                created_at: string;
                /** The handoff can be caught until then. */
                expires_at: string;
                caught_at: string | null;
                /** Name of the agent that caught it. */
                caught_by: string | null;
                completed_at: string | null;
                approval: {
                    state: "waiting" | "approved" | "rejected";
                    /** When a person decided. */
                    decided_at: string | null;
                    /** Name of the person’s key. */
                    decided_by: string | null;
                    /** The person’s note. */
                    note: string | null;
                    /** Digest of the content that the person saw, if the decision sent it. */
                    digest?: string;
                } | null;
                /** The output as sent with done. */
                result?: { [key: string]: unknown } | null;
                /** The inbox that it was passed to. */
                to?: string;
                /** Its priority in that inbox. */
                priority?: number;
                /** The labels that it was passed with. */
                labels?: { [key: string]: string };
                /** The handoff can be caught from then on; only if it was delayed. */
                available_at?: string;
                /** Its callback. */
                callback?: {
                    /** Without its query. */
                    url: string;
                    /** How many are to be delivered. */
                    pending: number;
                    delivered: number;
                    /** How many could not be delivered. */
                    failed: number;
                    /** How the address answered last. */
                    last_status: number | null;
                    /** Why it gave no answer. */
                    last_error: string | null;
                    /** When that was. */
                    last_at: string | null;
                };
                /** How many handoffs that it comes after have not ended yet. */
                blocked_by?: number;
                /** Deadline of the work; null while a question is open. */
                work_expires_at?: string | null;
                /** Deadline of the next heartbeat; null while a question is open. */
                heartbeat_expires_at?: string | null;
                /** When the catcher’s last heartbeat came. */
                heartbeat_at?: string;
                /** What its worker calls itself (Handoff-Worker). */
                worker?: string;
                /** When the latest checkpoint was given. */
                checkpoint_at?: string;
                /** The catcher’s latest progress report. */
                progress?: {
                    message?: string;
                    percent?: number;
                    at: string;
                };
                /** When the passer asked the catcher to stop. */
                cancel_requested_at?: string;
                /** Why it is cancelled. */
                cancel_reason?: string;
                /** When the handoff ended. */
                ended_at?: string;
                /** The agent that ended the handoff; null if none did. */
                ended_by?: string | null;
                /** As sent with fail. */
                error?: { [key: string]: unknown };
                /** As sent with decline. */
                reason?: string;
                /** What was missed: not_decided if a person still had to decide. */
                expired_because?: "not_caught" | "not_decided" | "not_done" | "stalled";
                /** Its catcher’s latest question. */
                ask?: {
                    /** The question’s id. */
                    ask_id: string;
                    /** How it stands. */
                    state: "open" | "answered" | "expired" | "withdrawn";
                    /** Who is asked: a person, or the agent that passed the handoff. */
                    of: "person" | "passer";
                    /** When it was asked. */
                    asked_at: string;
                    answered_at: string | null;
                    /** Who answered. */
                    answered_by: string | null;
                };
                /** Number of this attempt. */
                attempt?: number;
                /** Id of the previous attempt. */
                reissue_of?: string;
                /** Id of the next attempt, the successor; null until it is made. */
                reissued_as?: string | null;
                /** Id of the handoff that this one is a part of. */
                parent?: string;
                /** Id of the first handoff of the line. */
                root?: string;
                /** Number of hops from the root to this handoff. */
                hops?: number;
                /** The schedule that it is a run of. */
                schedule?: string;
                /** For which time that ran. */
                scheduled_for?: string;
                /** The id that was asked for, if this is a later attempt. */
                asked_as?: string;
                /** What agents said would be larger than 4 MiB in all, so the result, error or reason is left out. */
                result_omitted?: true;
            } | {
                handoff_id: string;
                /** There is no such handoff. */
                status: "unknown";
            })[];
            /** Whether what was waited for is so. */
            complete: boolean;
        };
        HeartbeatBody: {
            /** Moves the work’s deadline to this many seconds from now, if that is later. */
            extend_by?: number | null;
            /** Progress of the work: a message, a percentage, or both. It replaces the previous report. */
            progress?: {
                message?: string | null;
                percent?: number | null;
            } | null;
            /** What the work has got to, for whoever goes on with it: at most 65536 bytes. It replaces the one before; without it that stays. */
            checkpoint?: { [key: string]: unknown } | null;
        };
        /** The heartbeat is recorded. */
        HeartbeatAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "caught";
            /** Deadline of the work; null while a question is open. */
            work_expires_at: string | null;
            /** Deadline of the next heartbeat; null without heartbeat_within, and while a question is open. */
            heartbeat_expires_at: string | null;
            /** True if the passer wants the work stopped: fail or decline it, or go on and report it done. */
            cancel_requested: boolean;
            /** Why it is cancelled. */
            cancel_reason: string | null;
            /** The latest question, once there was one. */
            ask?: {
                /** The question’s id. */
                ask_id: string;
                /** How it stands. */
                state: "open" | "answered" | "expired" | "withdrawn";
            };
        };
        FailBody: {
            /** What went wrong; status shows it. */
            error: {
                message: string;
                code?: string | null;
                data?: { [key: string]: unknown } | null;
            };
            /** If false, no successor is made, even if attempts are left. */
            retry?: boolean | null;
            /** What the work has got to, for whoever goes on with it: at most 65536 bytes. It replaces the one before; without it that stays. */
            checkpoint?: { [key: string]: unknown } | null;
        };
        /** The handoff has ended. */
        FailAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "failed";
            /** When the handoff ended. */
            ended_at: string;
            /** Id of the next attempt, the successor. */
            reissued_as?: string;
        };
        DeclineBody: {
            /** Why; status shows it. */
            reason: string;
            /** What the work has got to, for whoever goes on with it: at most 65536 bytes. It replaces the one before; without it that stays. */
            checkpoint?: { [key: string]: unknown } | null;
        };
        /** The handoff has ended. */
        DeclineAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "declined";
            /** When the handoff ended. */
            ended_at: string;
            /** Id of the next attempt, the successor. */
            reissued_as?: string;
        };
        CancelBody: {
            /** Why; heartbeats show it to the catcher. */
            reason?: string | null;
            /** If true, takes a caught handoff from its catcher. */
            force?: boolean | null;
        };
        CancelAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "cancelled";
            /** When the handoff ended. */
            ended_at: string;
        } | {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "caught";
            /** When cancelling was first requested. */
            cancel_requested_at: string;
        };
        ReissueBody: Record<string, never>;
        /** The handoff is passed. */
        ReissueAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** The URL to catch it at. */
            pickup_url: string;
            status: "pending";
            /** When the handoff was passed, by Redis’s clock. */
            created_at: string;
            /** The handoff can be caught until then. */
            expires_at: string;
            /** The handoff can be caught from then on; only if it was delayed. */
            available_at?: string;
            /** How many handoffs that it comes after have not ended yet. */
            blocked_by?: number;
            /** The page on which a person decides; only with require_human. */
            approval_url?: string;
        };
        AskBody: {
            /** The question. */
            question: string;
            /** Who is asked: a person, or the handoff’s passer. */
            of?: "person" | "passer" | null;
            /** What one should know to answer. */
            details?: { [key: string]: unknown } | null;
            /** A JSON Schema that the answer must satisfy, with the same limits as result_schema. The page makes a form of it. */
            schema?: { [key: string]: unknown } | null;
            /** How long it can be answered, in seconds. */
            expires_in?: number | null;
        };
        /** Asked. The deadlines of the work are paused until it is answered. */
        AskAnswer: {
            /** The question’s id. */
            ask_id: string;
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            state: "open";
            /** As asked. */
            question: string;
            /** When it was asked. */
            asked_at: string;
            /** Until when it can be answered. */
            expires_at: string;
            /** The page where a person answers. */
            answer_url?: string;
        };
        /** The latest question. What isn’t there is null. */
        AskedAnswer: {
            /** The question’s id. */
            ask_id: string;
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** How it stands. */
            state: "open" | "answered" | "expired" | "withdrawn";
            /** As asked. */
            question: string;
            /** Who is asked: a person, or the agent that passed the handoff. */
            of: "person" | "passer";
            /** As asked. */
            details: { [key: string]: unknown } | null;
            /** What the answer must satisfy. */
            schema: { [key: string]: unknown } | null;
            /** When it was asked. */
            asked_at: string;
            /** Until when it can be answered. */
            expires_at: string;
            /** As answered. */
            answer: { [key: string]: unknown } | null;
            answered_at: string | null;
            /** Who answered. */
            answered_by: string | null;
            /** As sent with the answer. */
            note: string | null;
        };
        AnswerBody: {
            /** The question that is answered. */
            ask_id: string;
            /** The answer. */
            answer: { [key: string]: unknown };
            /** What else the agent should know. */
            note?: string | null;
        };
        /** Answered. */
        AnswerAnswer: {
            /** The question’s id. */
            ask_id: string;
            state: "answered";
            /** When it was answered. */
            answered_at: string;
            /** Who answered. */
            answered_by: string;
        };
        /** Open questions, the oldest first. */
        ListAsksAnswer: {
            /** May be fewer than `limit`, or none, even if there is a next_cursor. */
            items: {
                /** The question’s id. */
                ask_id: string;
                /** The handoff’s id: 25 URL-safe characters. */
                handoff_id: string;
                /** As asked, truncated to 1,000 characters. */
                question: string;
                /** The inbox that it was passed to. */
                to?: string;
                /** The labels that it was passed with. */
                labels?: { [key: string]: string };
                /** The agent that asks: the handoff’s catcher. */
                asked_by: string;
                /** When it was asked. */
                asked_at: string;
                /** Until when it can be answered. */
                expires_at: string;
                /** The page where a person answers. */
                answer_url?: string;
            }[];
            /** The cursor of the next page; null on the last one. */
            next_cursor: string | null;
        };
        /** Handoffs that wait for approval, oldest first. */
        ListApprovalsAnswer: {
            /** May be fewer than `limit`, or none, even if there is a next_cursor. */
            items: {
                /** The handoff’s id: 25 URL-safe characters. */
                handoff_id: string;
                /** As passed, truncated to 1,000 characters. */
                task: string;
                /** Only on a truncated task; /api/approvals/{id} has the full text. */
                task_truncated?: true;
                /** When the handoff was passed, by Redis’s clock. */
                created_at: string;
                /** The handoff can be caught until then. */
                expires_at: string;
                /** Name of the agent that passed the handoff. */
                passed_by: string;
                /** The handoff can be caught from then on; only if it was delayed. */
                available_at?: string;
                /** The labels that it was passed with. */
                labels?: { [key: string]: string };
            }[];
            /** The cursor of the next page; null on the last one. */
            next_cursor: string | null;
        };
        /** The complete handoff. */
        InspectApprovalAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "pending" | "caught" | "done" | "failed" | "declined" | "cancelled" | "expired" | "rejected";
            /** As passed. */
            task: string | null;
            /** As passed; null once deleted. */
            output: { [key: string]: unknown } | null;
            /** As passed; null once deleted. */
            context: { [key: string]: unknown } | null;
            /** As passed. */
            constraints: string | null;
            /** When the handoff was passed, by Redis’s clock. */
            created_at: string;
            /** The handoff can be caught until then. */
            expires_at: string;
            /** Name of the agent that passed the handoff. */
            passed_by: string;
            approval: {
                state: "waiting" | "approved" | "rejected";
                /** When a person decided. */
                decided_at: string | null;
                /** Name of the person’s key. */
                decided_by: string | null;
                /** The person’s note. */
                note: string | null;
                /** Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            };
            /** The inbox that it was passed to. */
            to?: string;
            /** Its priority in that inbox. */
            priority?: number;
            /** As passed. */
            parent?: string;
            /** As passed: seconds. */
            work_within?: number;
            /** As passed: seconds. */
            heartbeat_within?: number;
            /** As passed. */
            max_attempts?: number;
            /** The handoff can be caught from then on; only if it was delayed. */
            available_at?: string;
            /** The labels that it was passed with. */
            labels?: { [key: string]: string };
            /** Digest of what was passed. Send it with approve or reject: the decision is refused if the content is different by then. */
            digest?: string;
            /** As passed. */
            result_schema?: { [key: string]: unknown };
            /** The address that is told what becomes of it. */
            callback?: {
                /** Without its query. */
                url: string;
                /** Whether the result is sent there. */
                result: boolean;
            };
        };
        ApproveBody: {
            /** For the agent that catches the handoff. */
            note?: string | null;
            /** The digest that /api/approvals/{id} answered; the decision is refused if it doesn’t match. */
            digest?: string | null;
        };
        /** The decision is recorded. */
        ApproveAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "pending" | "rejected";
            approval: {
                state: "waiting" | "approved" | "rejected";
                /** When a person decided. */
                decided_at: string | null;
                /** Name of the person’s key. */
                decided_by: string | null;
                /** The person’s note. */
                note: string | null;
                /** Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            };
        };
        RejectBody: {
            /** The reason. */
            note: string;
            /** The digest that /api/approvals/{id} answered; the decision is refused if it doesn’t match. */
            digest?: string | null;
        };
        /** The decision is recorded. */
        RejectAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            status: "pending" | "rejected";
            approval: {
                state: "waiting" | "approved" | "rejected";
                /** When a person decided. */
                decided_at: string | null;
                /** Name of the person’s key. */
                decided_by: string | null;
                /** The person’s note. */
                note: string | null;
                /** Digest of the content that the person saw, if the decision sent it. */
                digest?: string;
            };
        };
        /** What people decided, and which questions they answered, the latest first. */
        ListDecisionsAnswer: {
            /** May be fewer than `limit`, or none, even if there is a next_cursor. */
            items: {
                handoff_id: string;
                state: "approved" | "rejected" | "answered";
                decided_at: string;
                /** The name of the person’s key. */
                decided_by: string;
                /** What the person wrote; null if nothing. Null once its texts were forgotten. */
                note: string | null;
                /** The digest of what was decided on; null for an answer. */
                digest: string | null;
                /** Its inbox; null if it was for none. */
                to: string | null;
                /** The labels that it was passed with. */
                labels?: { [key: string]: string };
                /** The agent that passed it. */
                passed_by: string;
                /** Of approved and rejected: the task, truncated to 200 characters. Null once its texts were forgotten. */
                task?: string | null;
                /** Of answered: the question’s id. */
                ask_id?: string;
                /** Of answered: the question, truncated to 200 characters. Null once its texts were forgotten. */
                question?: string | null;
            }[];
            /** The cursor of the next page; null on the last one. */
            next_cursor: string | null;
        };
        RedriveBody: {
            /** The inbox that they were passed to. */
            inbox?: string | null;
            /** How they ended. */
            status?: ("failed" | "declined" | "expired")[] | null;
            /** The code given to fail. */
            error_code?: string | null;
            /** Labels that they must have, all of them. */
            labels?: { [key: string]: string } | null;
            /** The agent that passed them. */
            passed_by?: string | null;
            /** They ended then or later. */
            since?: string | null;
            /** They ended before that. */
            until?: string | null;
            /** How many at most. */
            limit?: number | null;
            /** Whether to change nothing, and only to count what would change. */
            dry_run?: boolean | null;
        };
        RedriveAnswer: {
            /** How many have a successor now. */
            reissued: number;
            /** How many could not be: they are gone, or somebody else reissued them. */
            skipped: number;
            /** Whether there are others: then send it again. */
            more: boolean;
        } | {
            /** How many would change. */
            would_change: number;
            /** Whether there are others: then send it again. */
            more: boolean;
        };
        PurgeBody: {
            /** The inbox. Left out, `labels` must name a run. */
            inbox?: string | null;
            /** Why; status shows it as `cancel_reason`. */
            reason?: string | null;
            /** Labels that they must have, all of them. */
            labels?: { [key: string]: string } | null;
            /** What becomes of those that are caught: their catchers are asked to stop, or they are taken from them. Left out, they go on. */
            caught?: "ask" | "force" | null;
            /** How many at most. */
            limit?: number | null;
            /** Whether to change nothing, and only to count what would change. */
            dry_run?: boolean | null;
        };
        PurgeAnswer: {
            /** How many are cancelled now. */
            cancelled: number;
            /** With caught=ask: how many catchers are asked to stop. */
            requested?: number;
            /** Whether there are others: then send it again. */
            more: boolean;
        } | {
            /** How many would change. */
            would_change: number;
            /** Whether there are others: then send it again. */
            more: boolean;
        };
        /** Events. With Accept: text/event-stream, the answer is a stream of server-sent events. */
        EventsAnswer: {
            /** In the order of the feed, each event once. */
            items: ({
                id: string;
                type: "handoff.passed";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "pending";
                };
            } | {
                id: string;
                type: "handoff.approval_requested";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "pending";
                    /** The page where a person decides. */
                    approval_url: string;
                    /** When the handoff expires if nobody has caught it by then. */
                    expires_at: string;
                };
            } | {
                id: string;
                type: "handoff.approved";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "pending";
                };
            } | {
                id: string;
                type: "handoff.rejected";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "rejected";
                };
            } | {
                id: string;
                type: "handoff.caught";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "caught";
                    /** The agent that caught the handoff. */
                    caught_by: string;
                };
            } | {
                id: string;
                type: "handoff.asked";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "caught";
                    /** The agent that caught the handoff. */
                    caught_by: string;
                    /** Id of the question. */
                    ask_id: string;
                    /** Who is asked. */
                    of: "person" | "passer";
                    /** The page where a person answers; only if a person is asked. */
                    answer_url?: string;
                    /** When the question expires. */
                    expires_at: string;
                };
            } | {
                id: string;
                type: "handoff.answered";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "caught";
                    /** The agent that caught the handoff. */
                    caught_by: string;
                    /** Id of the question. */
                    ask_id: string;
                    /** The agent that answered: a person’s key, or the passer. */
                    answered_by: string;
                };
            } | {
                id: string;
                type: "handoff.ask_ended";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "caught" | "done" | "failed" | "declined" | "cancelled" | "expired";
                    /** The agent that caught the handoff. */
                    caught_by: string;
                    /** Id of the question. */
                    ask_id: string;
                    /** How it ended without an answer. */
                    state: "expired" | "withdrawn";
                    /** What was missed: not_decided if a person still had to decide. */
                    expired_because?: "not_caught" | "not_decided" | "not_done" | "stalled";
                };
            } | {
                id: string;
                type: "handoff.done";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "done";
                    /** The agent that caught the handoff. */
                    caught_by: string;
                };
            } | {
                id: string;
                type: "handoff.failed";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "failed";
                    /** The agent that caught the handoff. */
                    caught_by: string;
                    /** Id of the next attempt, the successor. */
                    reissued_as?: string;
                };
            } | {
                id: string;
                type: "handoff.declined";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "declined";
                    /** The agent that caught the handoff. */
                    caught_by: string;
                    /** Id of the next attempt, the successor. */
                    reissued_as?: string;
                };
            } | {
                id: string;
                type: "handoff.cancelled";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "cancelled";
                    /** The agent that caught the handoff. */
                    caught_by?: string;
                };
            } | {
                id: string;
                type: "handoff.cancel_requested";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "caught";
                    /** The agent that caught the handoff. */
                    caught_by: string;
                };
            } | {
                id: string;
                type: "handoff.expired";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "expired";
                    /** The agent that caught the handoff. */
                    caught_by?: string;
                    /** Id of the next attempt, the successor. */
                    reissued_as?: string;
                    /** What was missed: not_decided if a person still had to decide. */
                    expired_because: "not_caught" | "not_decided" | "not_done" | "stalled";
                };
            } | {
                id: string;
                type: "handoff.reissued";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    handoff_id: string;
                    /** The handoff’s inbox. */
                    to?: string;
                    /** The labels that it was passed with. */
                    labels?: { [key: string]: string };
                    /** The agent that passed the handoff. */
                    passed_by: string;
                    /** Id of the handoff that this one is a part of. */
                    parent?: string;
                    /** Number of this attempt, from the second one on. */
                    attempt?: number;
                    /** Id of the previous attempt. */
                    reissue_of?: string;
                    /** The schedule that it is a run of. */
                    schedule?: string;
                    /** For which time that ran. */
                    scheduled_for?: string;
                    status: "failed" | "declined" | "cancelled" | "expired";
                    /** The agent that caught the handoff. */
                    caught_by?: string;
                    /** Id of the next attempt, the successor. */
                    reissued_as: string;
                    /** What was missed: not_decided if a person still had to decide. */
                    expired_because?: "not_caught" | "not_decided" | "not_done" | "stalled";
                };
            } | {
                id: string;
                type: "webhook.disabled";
                /** When it was written to the feed. It never decreases in a feed. */
                time: string;
                data: {
                    /** The webhook’s id. */
                    webhook_id: string;
                    /** gone: the receiver answered 410. failing: no attempt succeeded for 72 hours. */
                    reason: "gone" | "failing";
                };
            })[];
            /** The value of `after` for the next request; there even if items is empty. */
            next: string;
            /** True if `after` is older than what is kept, or beyond both the newest event and Redis’s clock. Events may be missing then, and items starts with the oldest event kept. */
            reset?: boolean;
        };
        /** The secret that signs the callbacks of what this agent passes. */
        CallbackSecretAnswer: {
            /** The secret that signs its messages. It is shown only in this answer. */
            secret: string;
            /** Until then messages are signed with the old secret too. */
            old_secret_until?: string;
        };
        RotateCallbackSecretBody: {
            /** For how many seconds messages are signed with the old secret too. */
            grace?: number | null;
        };
        /** The callbacks have a new secret. */
        RotateCallbackSecretAnswer: {
            /** The secret that signs its messages. It is shown only in this answer. */
            secret: string;
            /** Until then messages are signed with the old secret too. */
            old_secret_until: string;
        };
        PutScheduleBody: {
            /** Five fields: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly. */
            cron?: string | null;
            /** An interval in seconds. */
            every?: number | null;
            /** The zone whose clock cron goes by, of the IANA database. */
            timezone?: string | null;
            /** What is passed: a body of pass, without parent, after and delay. {{scheduled_for}} in task, constraints and the values of labels becomes the time. */
            handoff: { [key: string]: unknown };
            /** What happens if the work of the tick before has not ended: the tick is skipped; both go on; or that work is cancelled. */
            overlap?: "skip" | "allow" | "cancel" | null;
            /** For how many seconds after it was due a tick is still run. */
            catch_up?: number | null;
            /** Up to how many seconds later a run comes. */
            jitter?: number | null;
            /** Ticks from then on. */
            starts_at?: string | null;
            /** Ticks before then. */
            ends_at?: string | null;
            /** Whether it doesn’t run. */
            paused?: boolean | null;
        };
        PutScheduleAnswer: {
            name: string;
            /** Five fields: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly. */
            cron: string | null;
            /** An interval in seconds. */
            every: number | null;
            /** The zone whose clock cron goes by, of the IANA database. */
            timezone: string | null;
            /** As given, without the token of a callback. */
            handoff: { [key: string]: unknown };
            /** What happens if the work of the tick before has not ended: the tick is skipped; both go on; or that work is cancelled. */
            overlap: "skip" | "allow" | "cancel";
            /** For how many seconds after it was due a tick is still run. */
            catch_up: number;
            /** Up to how many seconds later a run comes. */
            jitter: number;
            /** Ticks from then on. */
            starts_at: string | null;
            /** Ticks before then. */
            ends_at: string | null;
            /** Whether it doesn’t run. */
            paused: boolean;
            /** The agent that made it, and passes what it says. */
            passed_by: string;
            /** When it was made. */
            created_at: string;
            /** When it was changed last. */
            updated_at: string;
            /** Its next times, up to five, without jitter; none while it is paused. */
            next: string[];
            /** The newest tick’s run. */
            last: {
                /** The time that it ran for. */
                scheduled_for: string;
                /** When that happened. */
                at: string;
                /** What made it run. */
                by: "tick" | "run" | "backfill";
                outcome: "passed" | "skipped_overlap" | "skipped_late" | "refused";
                /** The handoff that was passed. */
                handoff_id?: string;
                /** Why the pass was refused. */
                code?: string;
                /** How many ticks in a row came too late. */
                count?: number;
                /** The last of those. */
                until?: string;
            } | null;
        } | {
            name: string;
            /** Five fields: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly. */
            cron: string | null;
            /** An interval in seconds. */
            every: number | null;
            /** The zone whose clock cron goes by, of the IANA database. */
            timezone: string | null;
            /** As given, without the token of a callback. */
            handoff: { [key: string]: unknown };
            /** What happens if the work of the tick before has not ended: the tick is skipped; both go on; or that work is cancelled. */
            overlap: "skip" | "allow" | "cancel";
            /** For how many seconds after it was due a tick is still run. */
            catch_up: number;
            /** Up to how many seconds later a run comes. */
            jitter: number;
            /** Ticks from then on. */
            starts_at: string | null;
            /** Ticks before then. */
            ends_at: string | null;
            /** Whether it doesn’t run. */
            paused: boolean;
            /** The agent that made it, and passes what it says. */
            passed_by: string;
            /** When it was made. */
            created_at: string;
            /** When it was changed last. */
            updated_at: string;
            /** Its next times, up to five, without jitter; none while it is paused. */
            next: string[];
            /** The newest tick’s run. */
            last: {
                /** The time that it ran for. */
                scheduled_for: string;
                /** When that happened. */
                at: string;
                /** What made it run. */
                by: "tick" | "run" | "backfill";
                outcome: "passed" | "skipped_overlap" | "skipped_late" | "refused";
                /** The handoff that was passed. */
                handoff_id?: string;
                /** Why the pass was refused. */
                code?: string;
                /** How many ticks in a row came too late. */
                count?: number;
                /** The last of those. */
                until?: string;
            } | null;
        };
        GetScheduleAnswer: {
            name: string;
            /** Five fields: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly. */
            cron: string | null;
            /** An interval in seconds. */
            every: number | null;
            /** The zone whose clock cron goes by, of the IANA database. */
            timezone: string | null;
            /** As given, without the token of a callback. */
            handoff: { [key: string]: unknown };
            /** What happens if the work of the tick before has not ended: the tick is skipped; both go on; or that work is cancelled. */
            overlap: "skip" | "allow" | "cancel";
            /** For how many seconds after it was due a tick is still run. */
            catch_up: number;
            /** Up to how many seconds later a run comes. */
            jitter: number;
            /** Ticks from then on. */
            starts_at: string | null;
            /** Ticks before then. */
            ends_at: string | null;
            /** Whether it doesn’t run. */
            paused: boolean;
            /** The agent that made it, and passes what it says. */
            passed_by: string;
            /** When it was made. */
            created_at: string;
            /** When it was changed last. */
            updated_at: string;
            /** Its next times, up to five, without jitter; none while it is paused. */
            next: string[];
            /** The newest tick’s run. */
            last: {
                /** The time that it ran for. */
                scheduled_for: string;
                /** When that happened. */
                at: string;
                /** What made it run. */
                by: "tick" | "run" | "backfill";
                outcome: "passed" | "skipped_overlap" | "skipped_late" | "refused";
                /** The handoff that was passed. */
                handoff_id?: string;
                /** Why the pass was refused. */
                code?: string;
                /** How many ticks in a row came too late. */
                count?: number;
                /** The last of those. */
                until?: string;
            } | null;
        };
        DeleteScheduleAnswer: null;
        /** A tenant’s schedules by name. */
        ListSchedulesAnswer: {
            /** May be fewer than `limit`, or none, even if there is a next_cursor. */
            items: {
                name: string;
                /** Five fields: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly. */
                cron: string | null;
                /** An interval in seconds. */
                every: number | null;
                /** The zone whose clock cron goes by, of the IANA database. */
                timezone: string | null;
                /** What happens if the work of the tick before has not ended: the tick is skipped; both go on; or that work is cancelled. */
                overlap: "skip" | "allow" | "cancel";
                /** For how many seconds after it was due a tick is still run. */
                catch_up: number;
                /** Up to how many seconds later a run comes. */
                jitter: number;
                /** Ticks from then on. */
                starts_at: string | null;
                /** Ticks before then. */
                ends_at: string | null;
                /** Whether it doesn’t run. */
                paused: boolean;
                /** The agent that made it, and passes what it says. */
                passed_by: string;
                /** When it was made. */
                created_at: string;
                /** When it was changed last. */
                updated_at: string;
                /** Its next times, up to five, without jitter; none while it is paused. */
                next: string[];
                /** The newest tick’s run. */
                last: {
                    /** The time that it ran for. */
                    scheduled_for: string;
                    /** When that happened. */
                    at: string;
                    /** What made it run. */
                    by: "tick" | "run" | "backfill";
                    outcome: "passed" | "skipped_overlap" | "skipped_late" | "refused";
                    /** The handoff that was passed. */
                    handoff_id?: string;
                    /** Why the pass was refused. */
                    code?: string;
                    /** How many ticks in a row came too late. */
                    count?: number;
                    /** The last of those. */
                    until?: string;
                } | null;
            }[];
            /** The cursor of the next page; null on the last one. */
            next_cursor: string | null;
        };
        PauseScheduleBody: Record<string, never>;
        PauseScheduleAnswer: {
            name: string;
            /** Five fields: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly. */
            cron: string | null;
            /** An interval in seconds. */
            every: number | null;
            /** The zone whose clock cron goes by, of the IANA database. */
            timezone: string | null;
            /** As given, without the token of a callback. */
            handoff: { [key: string]: unknown };
            /** What happens if the work of the tick before has not ended: the tick is skipped; both go on; or that work is cancelled. */
            overlap: "skip" | "allow" | "cancel";
            /** For how many seconds after it was due a tick is still run. */
            catch_up: number;
            /** Up to how many seconds later a run comes. */
            jitter: number;
            /** Ticks from then on. */
            starts_at: string | null;
            /** Ticks before then. */
            ends_at: string | null;
            /** Whether it doesn’t run. */
            paused: boolean;
            /** The agent that made it, and passes what it says. */
            passed_by: string;
            /** When it was made. */
            created_at: string;
            /** When it was changed last. */
            updated_at: string;
            /** Its next times, up to five, without jitter; none while it is paused. */
            next: string[];
            /** The newest tick’s run. */
            last: {
                /** The time that it ran for. */
                scheduled_for: string;
                /** When that happened. */
                at: string;
                /** What made it run. */
                by: "tick" | "run" | "backfill";
                outcome: "passed" | "skipped_overlap" | "skipped_late" | "refused";
                /** The handoff that was passed. */
                handoff_id?: string;
                /** Why the pass was refused. */
                code?: string;
                /** How many ticks in a row came too late. */
                count?: number;
                /** The last of those. */
                until?: string;
            } | null;
        };
        ResumeScheduleBody: Record<string, never>;
        ResumeScheduleAnswer: {
            name: string;
            /** Five fields: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly. */
            cron: string | null;
            /** An interval in seconds. */
            every: number | null;
            /** The zone whose clock cron goes by, of the IANA database. */
            timezone: string | null;
            /** As given, without the token of a callback. */
            handoff: { [key: string]: unknown };
            /** What happens if the work of the tick before has not ended: the tick is skipped; both go on; or that work is cancelled. */
            overlap: "skip" | "allow" | "cancel";
            /** For how many seconds after it was due a tick is still run. */
            catch_up: number;
            /** Up to how many seconds later a run comes. */
            jitter: number;
            /** Ticks from then on. */
            starts_at: string | null;
            /** Ticks before then. */
            ends_at: string | null;
            /** Whether it doesn’t run. */
            paused: boolean;
            /** The agent that made it, and passes what it says. */
            passed_by: string;
            /** When it was made. */
            created_at: string;
            /** When it was changed last. */
            updated_at: string;
            /** Its next times, up to five, without jitter; none while it is paused. */
            next: string[];
            /** The newest tick’s run. */
            last: {
                /** The time that it ran for. */
                scheduled_for: string;
                /** When that happened. */
                at: string;
                /** What made it run. */
                by: "tick" | "run" | "backfill";
                outcome: "passed" | "skipped_overlap" | "skipped_late" | "refused";
                /** The handoff that was passed. */
                handoff_id?: string;
                /** Why the pass was refused. */
                code?: string;
                /** How many ticks in a row came too late. */
                count?: number;
                /** The last of those. */
                until?: string;
            } | null;
        };
        /** The newest runs, the newest first. */
        ListScheduleRunsAnswer: {
            items: {
                /** The time that it ran for. */
                scheduled_for: string;
                /** When that happened. */
                at: string;
                /** What made it run. */
                by: "tick" | "run" | "backfill";
                outcome: "passed" | "skipped_overlap" | "skipped_late" | "refused";
                /** The handoff that was passed. */
                handoff_id?: string;
                /** Why the pass was refused. */
                code?: string;
                /** How many ticks in a row came too late. */
                count?: number;
                /** The last of those. */
                until?: string;
            }[];
        };
        RunScheduleBody: Record<string, never>;
        /** The handoff is passed. */
        RunScheduleAnswer: {
            /** The handoff’s id: 25 URL-safe characters. */
            handoff_id: string;
            /** The URL to catch it at. */
            pickup_url: string;
            status: "pending";
            /** When the handoff was passed, by Redis’s clock. */
            created_at: string;
            /** The handoff can be caught until then. */
            expires_at: string;
            /** The handoff can be caught from then on; only if it was delayed. */
            available_at?: string;
            /** How many handoffs that it comes after have not ended yet. */
            blocked_by?: number;
            /** The page on which a person decides; only with require_human. */
            approval_url?: string;
        };
        BackfillScheduleBody: {
            /** Ticks from then on. */
            since: string;
            /** Ticks before then; not in the future. */
            until: string;
        };
        BackfillScheduleAnswer: {
            /** How many ticks were passed. */
            passed: number;
            /** How many had run before. */
            skipped: number;
            /** How many passes were refused. */
            refused: number;
            /** Whether there are other ticks in that span. */
            more: boolean;
            /** The since to go on with. */
            next: string | null;
        };
        BatchBody: {
            /** They run concurrently, in no particular order. */
            operations: {
                /** The operation. It does what the request of that name does. */
                op: "pass" | "catch" | "done" | "status" | "heartbeat" | "fail" | "decline" | "cancel" | "reissue";
                /** The handoff’s id: required, except for pass, which takes none. */
                id?: string | null;
                /** The body that the single request takes. catch and status take none. */
                body?: { [key: string]: unknown } | null;
                /** The operation’s Idempotency-Key. */
                idempotency_key?: string | null;
            }[];
        };
        /** The answers of the operations. One that fails does not affect the others. If one was rate limited, the header fields say when to retry. */
        BatchAnswer: {
            /** One for each operation, in the order of the request. */
            results: {
                /** The status that the single request would have had. */
                status: number;
                /** The body of its response: the answer, or a problem document. */
                body: { [key: string]: unknown };
                /** Only on a replayed answer: the operation had been carried out already. */
                replayed?: true;
            }[];
        };
        /** The codes of refusals. */
        ErrorCode: "invalid_request" | "unauthorized" | "insufficient_scope" | "not_the_catcher" | "not_addressee" | "not_the_passer" | "self_approval" | "cross_origin" | "not_found" | "not_asked" | "events_off" | "ended_off" | "method_not_allowed" | "request_timeout" | "already_caught" | "already_done" | "already_failed" | "already_declined" | "cancelled" | "not_caught" | "approval_required" | "not_yet" | "rejected" | "already_decided" | "no_approval_required" | "content_changed" | "already_asked" | "already_answered" | "withdrawn" | "unknown_handoff" | "blocked" | "unknown_parent" | "hop_limit" | "loop_detected" | "too_many_webhooks" | "too_many_schedules" | "expired" | "payload_too_large" | "uri_too_long" | "unsupported_media_type" | "idempotency_key_reused" | "result_invalid" | "result_schema_too_slow" | "rate_limited" | "inbox_full" | "headers_too_large" | "internal_error" | "unavailable";
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
export type SetInboxBody = components['schemas']['SetInboxBody'];
export type SetInboxAnswer = components['schemas']['SetInboxAnswer'];
export type ListInboxesAnswer = components['schemas']['ListInboxesAnswer'];
export type WorkersAnswer = components['schemas']['WorkersAnswer'];
export type DoneBody = components['schemas']['DoneBody'];
export type DoneAnswer = components['schemas']['DoneAnswer'];
export type StatusAnswer = components['schemas']['StatusAnswer'];
export type ListAnswer = components['schemas']['ListAnswer'];
export type ListRunsAnswer = components['schemas']['ListRunsAnswer'];
export type GetAnswer = components['schemas']['GetAnswer'];
export type WaitBody = components['schemas']['WaitBody'];
export type WaitAnswer = components['schemas']['WaitAnswer'];
export type HeartbeatBody = components['schemas']['HeartbeatBody'];
export type HeartbeatAnswer = components['schemas']['HeartbeatAnswer'];
export type FailBody = components['schemas']['FailBody'];
export type FailAnswer = components['schemas']['FailAnswer'];
export type DeclineBody = components['schemas']['DeclineBody'];
export type DeclineAnswer = components['schemas']['DeclineAnswer'];
export type CancelBody = components['schemas']['CancelBody'];
export type CancelAnswer = components['schemas']['CancelAnswer'];
export type ReissueBody = components['schemas']['ReissueBody'];
export type ReissueAnswer = components['schemas']['ReissueAnswer'];
export type AskBody = components['schemas']['AskBody'];
export type AskAnswer = components['schemas']['AskAnswer'];
export type AskedAnswer = components['schemas']['AskedAnswer'];
export type AnswerBody = components['schemas']['AnswerBody'];
export type AnswerAnswer = components['schemas']['AnswerAnswer'];
export type ListAsksAnswer = components['schemas']['ListAsksAnswer'];
export type ListApprovalsAnswer = components['schemas']['ListApprovalsAnswer'];
export type InspectApprovalAnswer = components['schemas']['InspectApprovalAnswer'];
export type ApproveBody = components['schemas']['ApproveBody'];
export type ApproveAnswer = components['schemas']['ApproveAnswer'];
export type RejectBody = components['schemas']['RejectBody'];
export type RejectAnswer = components['schemas']['RejectAnswer'];
export type ListDecisionsAnswer = components['schemas']['ListDecisionsAnswer'];
export type RedriveBody = components['schemas']['RedriveBody'];
export type RedriveAnswer = components['schemas']['RedriveAnswer'];
export type PurgeBody = components['schemas']['PurgeBody'];
export type PurgeAnswer = components['schemas']['PurgeAnswer'];
export type EventsAnswer = components['schemas']['EventsAnswer'];
export type CallbackSecretAnswer = components['schemas']['CallbackSecretAnswer'];
export type RotateCallbackSecretBody = components['schemas']['RotateCallbackSecretBody'];
export type RotateCallbackSecretAnswer = components['schemas']['RotateCallbackSecretAnswer'];
export type PutScheduleBody = components['schemas']['PutScheduleBody'];
export type PutScheduleAnswer = components['schemas']['PutScheduleAnswer'];
export type GetScheduleAnswer = components['schemas']['GetScheduleAnswer'];
export type DeleteScheduleAnswer = components['schemas']['DeleteScheduleAnswer'];
export type ListSchedulesAnswer = components['schemas']['ListSchedulesAnswer'];
export type PauseScheduleBody = components['schemas']['PauseScheduleBody'];
export type PauseScheduleAnswer = components['schemas']['PauseScheduleAnswer'];
export type ResumeScheduleBody = components['schemas']['ResumeScheduleBody'];
export type ResumeScheduleAnswer = components['schemas']['ResumeScheduleAnswer'];
export type ListScheduleRunsAnswer = components['schemas']['ListScheduleRunsAnswer'];
export type RunScheduleBody = components['schemas']['RunScheduleBody'];
export type RunScheduleAnswer = components['schemas']['RunScheduleAnswer'];
export type BackfillScheduleBody = components['schemas']['BackfillScheduleBody'];
export type BackfillScheduleAnswer = components['schemas']['BackfillScheduleAnswer'];
export type BatchBody = components['schemas']['BatchBody'];
export type BatchAnswer = components['schemas']['BatchAnswer'];
export type ErrorCode = components['schemas']['ErrorCode'];
