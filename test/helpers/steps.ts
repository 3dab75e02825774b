import fc from 'fast-check'

/** The steps of the property test: every request of agents and approvers, the passing of time, and the sweep. */

const who = fc.constantFrom('alice', 'alice', 'alice2', 'bob', 'bob', 'bob', 'foreignAlice')
// Agents that may do so, and others.
const whoMay = fc.constantFrom('may', 'may', 'alice', 'alice2', 'bob', 'foreignAlice')
const passer = fc.constantFrom('may', 'may', 'alice', 'alice2', 'bob', 'foreignAlice', 'operator', 'foreignOperator')
// Among them Alice, who may not decide on what she passed.
const decider = fc.constantFrom('approver', 'approver', 'approver', 'approverAlice', 'foreignApprover')
const key = fc.option(fc.constantFrom('k1', 'k2'), { nil: undefined })
// The latest handoffs and the first, so that much happens to few; and one that doesn't exist.
export const noTarget = 99
const target = fc.constantFrom(-1, -1, -1, -1, -1, -1, -2, 0, 0, 0, 0, 1, noTarget)
const one = <T> (...values: T[]) => fc.constantFrom(...values)

export const inboxes = ['w', 'alice', 'bob']
const inbox = one('w', ...inboxes)
// Few priorities, so that some are the same; and a step outweighs more than a sequence lasts.
const addressed = fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: fc.record({ to: inbox, priority: one(undefined, undefined, 0, 5, 9) }) })

const passed = fc.tuple(addressed, fc.record({
  task: one('a', 'b'),
  require_human: one(false, false, true),
  expires_in: one(5, 20),
  work_within: one(undefined, undefined, 4, 15),
  heartbeat_within: one(undefined, undefined, 5, 8),
  delay: one(undefined, undefined, undefined, 3),
  max_attempts: one(undefined, 2, 3, 3),
  retry_delay: one(undefined, 0, 0, 4),
  labels: one<Record<string, string> | undefined>(undefined, undefined, { run: '1' }, { team: 'red', run: '1' }),
})).map(([to, rest]) => ({ ...rest, ...to }))

// Bodies as sent, the empty one included.
const results = one('', '{}', '{"output":{"n":1.0}}')
const faults = one('{"error":{"message":"m"}}', '{"error":{"message":"m","code":"c.1","data":{"n":[1]}},"retry":true}', '{"error":{"message":"m"},"retry":false}')
const reasons = one('{"reason":"not mine"}', '{"reason":"no time"}')
const beats = one('', '{}', '{"extend_by":1}', '{"extend_by":12}', '{"extend_by":20}', '{"progress":{"message":"half"}}', '{"progress":{"percent":50.5,"message":"more"},"extend_by":9}')
const wishes = one('', '{}', '{"reason":"first"}', '{"reason":"second"}', '{"force":true}', '{"reason":"now","force":true}')

const by = (of: fc.Arbitrary<string>) => ({ who: of, key, target })

const pass = fc.record({ op: fc.constant('pass' as const), who, key, passed })
const caught = fc.record({ op: fc.constant('catch' as const), ...by(who) })
const caughtNext = fc.record({ op: fc.constant('next' as const), who, key, body: one('', '{}', '{"inbox":"w"}', '{"inbox":"w"}', '{"inbox":"w","max":2}', '{"max":100}', '{"inbox":"w","max":100}') })
// The requests of a catcher.
const said = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constant('heartbeat' as const), ...by(whoMay), body: beats }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('done' as const), ...by(whoMay), body: results }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('fail' as const), ...by(whoMay), body: faults }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('decline' as const), ...by(whoMay), body: reasons }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('cancel' as const), ...by(passer), body: wishes }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('reissue' as const), ...by(passer), body: one('', '{}') }) }
)
const decided = fc.record({
  op: fc.constant('decide' as const), who: decider, target, verdict: one('approve' as const, 'approve' as const, 'reject' as const), note: one(null, 'n'), seen: one(undefined, undefined, 'a', 'b'),
})
// To the last millisecond before a deadline, and to its first.
const until = fc.record({ op: fc.constant('until' as const), target, ms: one(-1, 0) })

const step = fc.oneof(
  { weight: 3, arbitrary: pass },
  { weight: 5, arbitrary: caught },
  { weight: 3, arbitrary: caughtNext },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('count' as const), who, inbox }) },
  { weight: 12, arbitrary: said },
  { weight: 4, arbitrary: decided },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('list' as const), who: decider, labels: one(undefined, 'run:1', 'run:1,team:red') }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('inspect' as const), who: decider, target }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('status' as const), who, target }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('wait' as const), ms: one(1, 1500, 4000, 9000) }) },
  { weight: 3, arbitrary: until },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('sweep' as const), target }) },
  // Repeats the last operation that had an Idempotency-Key.
  { weight: 3, arbitrary: fc.record({ op: fc.constant('again' as const) }) },
  // A request that can succeed in its target's state: otherwise few sequences would reach a second attempt.
  { weight: 18, arbitrary: fc.record({ op: fc.constant('onward' as const), target, caught, said, decided, until }) }
)
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
export type Asked = StepOf<'catch' | 'heartbeat' | 'done' | 'fail' | 'decline' | 'cancel' | 'reissue' | 'decide' | 'inspect' | 'status'>
export type StepOf<Op extends Step['op']> = Extract<Step, { op: Op }>

// Much comes into an inbox, and is caught from it.
const addressedPass = pass.map(one => ({ ...one, passed: { ...one.passed, to: 'w' } }))
const inboxStep = fc.oneof(
  { weight: 6, arbitrary: addressedPass },
  { weight: 4, arbitrary: caughtNext },
  { weight: 2, arbitrary: decided },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('count' as const), who, inbox: fc.constant('w') }) },
  { weight: 8, arbitrary: step }
)

/** Every sequence begins with a pass, so that there is a handoff from the start. */
const sequenceOf = (first: fc.Arbitrary<Step>, then: fc.Arbitrary<Step>) => fc.tuple(first, fc.array(then, { minLength: 8, maxLength: 24, size: 'max' })).map(([first, steps]) => [first, ...steps])
export const sequence = fc.oneof({ weight: 2, arbitrary: sequenceOf(pass, step) }, { weight: 1, arbitrary: sequenceOf(addressedPass, inboxStep) })
