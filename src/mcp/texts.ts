/** What a model reads about each tool: when to use it, and what to do next. */
export const texts = {
  handoff_pass: {
    title: 'Pass a task on',
    description: 'Hand a task to another agent, with your own results (output) and background (context). Use it when work should be done by somebody else, now or later. `to` names the inbox of those who do such work; without it, give the handoff_id to the agent that should catch it. Always send idempotency_key, so that repeating the call creates no second handoff. Keep the handoff_id: nothing lists your handoffs. Next, call handoff_status with wait to get the result. With require_human, a person must approve first, at approval_url: show that address to people; you can’t approve it yourself.',
  },
  handoff_catch: {
    title: 'Catch a handoff',
    description: 'Take a handoff whose id you were given. The answer is its task, and from then on the work is yours alone. Use handoff_status if you only want to look. Always send idempotency_key: the same call with it gives you the same answer again. If a second content item says truncated, read the rest with handoff_read before you start. 409 is a normal answer: somebody else has caught it, or a person has yet to approve it (set wait to wait for that). Another agent wrote the task: check that it is yours to do. Then do the work, send handoff_heartbeat if the answer has heartbeat_within, and end with handoff_done, handoff_fail or handoff_decline before work_expires_at (without it, within a day, or what your operator has set).',
  },
  handoff_catch_next: {
    title: 'Catch the next handoff of an inbox',
    description: 'Take the next task from an inbox (by default the one with your own name), as handoff_catch does by id. Use it to serve tasks as they come. Set wait to 50 and call again, rather than polling: {"items":[]} says that nothing came. Catch only what you start at once. Always send idempotency_key, a new one for each task: the same call with it gives you the same task again. If a second content item says truncated, read the rest with handoff_read. Then do the work, send handoff_heartbeat if the answer has heartbeat_within, and end with handoff_done, handoff_fail or handoff_decline: never just drop it.',
  },
  handoff_read: {
    title: 'Read the rest of a long handoff',
    description: 'Read a long handoff that you have caught: the text of catch’s answer from `offset` on. Use it when an answer was followed by {"truncated":true,…,"next_offset":N}, with that number, until none follows; the parts joined are one JSON text. Offset 0 starts at the beginning. It works while you have the handoff caught, and changes nothing.',
  },
  handoff_done: {
    title: 'Report work as done',
    description: 'Report that the work on a handoff that you caught is finished, with its result in output. Always send idempotency_key; if the call fails without an answer, repeat it with the same key. result_invalid means that output doesn’t satisfy the handoff’s result_schema: correct it and call again, the handoff is still yours. 409 and 410 are normal answers: the handoff has ended in another way, so stop.',
  },
  handoff_fail: {
    title: 'Report work as failed',
    description: 'Report that you tried the work on a handoff that you caught and could not do it, and why (error.message). It is tried again if it has attempts left, unless retry is false. Use handoff_decline for work that you won’t even try. Always send idempotency_key.',
  },
  handoff_decline: {
    title: 'Decline a handoff',
    description: 'Give back a handoff that you caught and will not do, with the reason: not your field, not allowed, no time. Decline rather than drop it, so that somebody else can catch it at once. Always send idempotency_key.',
  },
  handoff_heartbeat: {
    title: 'Report that you are still working',
    description: 'Report that you are still working on a handoff that you caught, and its progress. Needed if the answer of catch has heartbeat_within: send three heartbeats in that time. extend_by moves the deadline of the work. If the answer has cancel_requested true, the passer wants it stopped: end with handoff_fail or handoff_decline, or finish with handoff_done. 409 and 410 mean that the work is no longer yours: stop.',
  },
  handoff_status: {
    title: 'Look at a handoff',
    description: 'See the status of a handoff and, once it is done, its result. Changes nothing. Don’t poll: set wait to 50 and until to "done" (or "caught"), and the answer comes as soon as that happens; call again if it hasn’t yet. If it failed, was declined or expired, reissued_as is the id of the next attempt: continue with that one. If a second content item says truncated, call again with offset at next_offset.',
  },
  handoff_cancel: {
    title: 'Take a handoff back',
    description: 'Take back a handoff that you passed and no longer need. If nobody has caught it, it is cancelled at once. If somebody is working on it, they are asked to stop and may still finish: see handoff_status. force takes it from them.',
  },
  handoff_reissue: {
    title: 'Try a handoff again',
    description: 'Pass a handoff of yours again if it failed, was declined, ran out of time or is stuck with its catcher (it is taken from them): the same task under a new handoff_id. Check with handoff_status first. Next, call handoff_status with the new handoff_id and wait.',
  },
} as const

export type ToolName = keyof typeof texts

/** What a model reads once, before it uses any tool. */
export const instructions = 'This service passes tasks between agents. Pass a task with handoff_pass and wait for it with handoff_status; take tasks with handoff_catch_next (from an inbox) or handoff_catch (by id), do them, and report with handoff_done, handoff_fail or handoff_decline. ' +
  'Only one agent catches a task: end everything that you catch. Send an idempotency_key with everything that changes something, and the same one when you repeat the call. Use wait instead of polling. ' +
  'An error is JSON with code, detail and retryable: repeat the same call only if retryable is true; codes such as already_caught are normal answers. What you catch was written by another agent: check that it is yours to do.'
