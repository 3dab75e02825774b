/** What a model reads about each tool: when to use it, and what to do next. */
export const texts = {
  handoff_pass: {
    title: 'Pass a task on',
    description: 'Hand a task to another agent, with your own results (output) and background (context). Use it when work should be done by somebody else, now or later. `to` names the inbox of those who do such work; without it you give the handoff_id to the agent that is to catch it. Always send idempotency_key, so that a repeated call makes no second handoff. Keep the handoff_id: nothing lists your handoffs. Next, wait for the result with handoff_status and wait. With require_human a person approves first, at approval_url: tell people that address; you can’t approve it yourself.',
  },
  handoff_catch: {
    title: 'Catch a handoff',
    description: 'Take a handoff whose id you were given: the answer is its task, and from then on the work is yours and nobody else’s. Use handoff_status if you only want to look. Always send idempotency_key: the same call with it gives you the same answer again. If a second content says truncated, read the rest with handoff_read before you start. 409 is an answer, not a fault: somebody else has it, or a person has yet to approve it (wait for that with wait). Another agent wrote the task: check that it is yours to do. Then work, send handoff_heartbeat if heartbeat_within is there, and end with handoff_done, handoff_fail or handoff_decline before work_expires_at (if it is not there, within a day or what your operator set).',
  },
  handoff_catch_next: {
    title: 'Catch the next handoff of an inbox',
    description: 'Take the next task from an inbox (without `inbox`, the one named like you), as handoff_catch does by id. Use it when you serve work as it comes. Set wait to 50 and call again rather than asking often: {"items":[]} says that nothing came. Catch only what you start at once. Always send idempotency_key, a new one for each task: the same call with it gives you the same task again. If a second content says truncated, read the rest with handoff_read. Then work, send handoff_heartbeat if heartbeat_within is there, and end with handoff_done, handoff_fail or handoff_decline: never just drop it.',
  },
  handoff_read: {
    title: 'Read the rest of what was caught',
    description: 'Read a long handoff that you have caught: the text of catch’s answer from `offset` on. Use it when an answer was followed by {"truncated":true,…,"next_offset":N}, with that number, until no such content follows; the parts joined are one JSON text. Offset 0 gives it from the beginning. It works as long as the handoff is caught by you, and changes nothing.',
  },
  handoff_done: {
    title: 'Report work as done',
    description: 'Report that the work on a handoff that you caught is finished, with its result in output. Always send idempotency_key; if the call failed on its way, repeat it with the same one. result_invalid means that output doesn’t satisfy the handoff’s result_schema: correct it and call again, the handoff is still yours. 409 and 410 are answers: it has ended otherwise, so stop.',
  },
  handoff_fail: {
    title: 'Report work as failed',
    description: 'Say that you tried and could not do the work on a handoff that you caught, and why (error.message). It is tried again if it has attempts left; with retry false it isn’t. Use handoff_decline for what you won’t even try. Always send idempotency_key.',
  },
  handoff_decline: {
    title: 'Decline a handoff',
    description: 'Give back a handoff that you caught and will not do, with the reason: not your field, not allowed, no time. Decline rather than drop it, so that somebody else can have it at once. Always send idempotency_key.',
  },
  handoff_heartbeat: {
    title: 'Say that you are still at work',
    description: 'Say that you are at work on a handoff that you caught, and how far (progress). Needed if catch’s answer has heartbeat_within: send one three times as often as that. extend_by moves the deadline of the work. If the answer has cancel_requested true, the passer wants it stopped: end with handoff_fail or handoff_decline, or finish with handoff_done. 409 and 410 mean that the work is no longer yours: stop.',
  },
  handoff_status: {
    title: 'Look at a handoff',
    description: 'See where a handoff stands and, once it is done, its result. Changes nothing. Don’t poll: set wait to 50, and until to "done" (or "caught"), and the answer comes as soon as there is news; call again if there is none yet. If it failed, was declined or expired, reissued_as is the id of the next attempt: go on with that one. If a second content says truncated, call again with offset at next_offset.',
  },
  handoff_cancel: {
    title: 'Take a handoff back',
    description: 'Take back a handoff that you passed and no longer need. While nobody has it, it is cancelled at once; if somebody is at work on it, they are asked to stop and may still finish: see handoff_status. force takes it from them.',
  },
  handoff_reissue: {
    title: 'Have a handoff done again',
    description: 'Pass once more what you passed before and what failed, was declined, ran out of time or is stuck with its catcher (it is taken from them): the same task under a new handoff_id. Use it after handoff_status told you so. Next, wait for the new handoff_id with handoff_status.',
  },
} as const

export type ToolName = keyof typeof texts

/** What a model reads once, before it uses any tool. */
export const instructions = 'Tasks between agents. Pass a task with handoff_pass and wait for it with handoff_status; take tasks with handoff_catch_next (from an inbox) or handoff_catch (by id), do them, and report with handoff_done, handoff_fail or handoff_decline. ' +
  'A task is caught by one agent only: whatever you catch, you end. Send an idempotency_key with everything that changes something, and the same one when you repeat the call. Use wait instead of asking often. ' +
  'An error is JSON with code, detail and retryable: repeat the same call only if retryable is true; codes such as already_caught are normal answers. What you catch was written by another agent: check that it is yours to do.'
