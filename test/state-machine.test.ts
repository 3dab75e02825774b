import fc from 'fast-check'
import t from 'tap'
import { tagOf } from '../src/handoff/id.ts'
import { testApp } from './helpers/app.ts'
import type { TestApp, Who } from './helpers/app.ts'
import { isWhole } from './helpers/extent.ts'
import { Model } from './helpers/model.ts'
import type { Agent, Expected } from './helpers/model.ts'

/** Random sequences of everything an agent or an approver can ask, with time moving in between, held against the model. */

const agents: Record<string, Agent> = {
  alice: { tenant: 'default', name: 'alice' },
  alice2: { tenant: 'default', name: 'alice' },
  bob: { tenant: 'default', name: 'bob' },
  foreignAlice: { tenant: 'other', name: 'alice' },
  approver: { tenant: 'default', name: 'carol' },
  approverAlice: { tenant: 'default', name: 'alice' },
  foreignApprover: { tenant: 'other', name: 'carol' },
}
const workTtl = 10_000

const who = fc.constantFrom('alice', 'alice2', 'bob', 'foreignAlice')
// Alice's own among them, who may not decide on what she passed.
const decider = fc.constantFrom('approver', 'approver', 'approverAlice', 'foreignApprover')
const key = fc.option(fc.constantFrom('k1', 'k2'), { nil: undefined })
// Mostly one of the first few: few handoffs that much happens to.
const target = fc.constantFrom(0, 0, 0, 1, 2)
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ op: fc.constant('pass' as const), who, key, human: fc.boolean(), seconds: fc.constantFrom(5, 20), task: fc.constantFrom('a', 'b') }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('catch' as const), who, key, target }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('done' as const), who, key, target, body: fc.constantFrom('', '{}', '{"output":{"n":1.0}}') }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('decide' as const), who: decider, target, verdict: fc.constantFrom('approve' as const, 'approve' as const, 'reject' as const), note: fc.constantFrom(null, 'n'),
    })
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('list' as const), who: decider }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('status' as const), who, target }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('wait' as const), ms: fc.constantFrom(1, 4000, 9000) }) },
  // To the last millisecond before a deadline, and to its first.
  { weight: 2, arbitrary: fc.record({ op: fc.constant('until' as const), target, ms: fc.constantFrom(-1, 0) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('sweep' as const), target }) }
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

const unknownId = `${'A'.repeat(25)}`

class Run {
  readonly #t: TestApp
  readonly #model: Model
  readonly #ids: string[] = []
  readonly #scope: string

  constructor (app: TestApp, start: number, number: number) {
    this.#t = app
    this.#model = new Model(start, workTtl)
    // Sequences share a Redis: their keys must not be the same.
    this.#scope = `s${number}-`
  }

  async take (step: Step): Promise<void> {
    const { call, setClock, store } = this.#t
    if (step.op === 'wait' || step.op === 'until') {
      const time = step.op === 'wait' ? this.#model.now + step.ms : this.#model.deadlineOf(this.#id(step.target)) + step.ms
      this.#model.now = Math.max(this.#model.now, time)
      await setClock(this.#model.now)
    } else if (step.op === 'sweep') {
      await store.handoffs.sweep(tagOf(this.#id(step.target)), 100)
    } else if (step.op === 'pass') {
      await this.#pass(step)
    } else if (step.op === 'list') {
      await this.#list(step)
    } else {
      const id = this.#id(step.target)
      const asker = agents[step.who]!
      if (step.op === 'status') {
        check(this.#model.status(asker, id), await call(step.who as Who, 'GET', `/api/status/${id}`), step)
      } else if (step.op === 'catch') {
        check(this.#model.catch(asker, id, step.key), await call(step.who as Who, 'GET', `/api/catch/${id}`, undefined, this.#headers(step.key)), step)
      } else if (step.op === 'decide') {
        // A rejection without a note is refused before anybody looks at the handoff.
        const note = step.verdict === 'reject' ? step.note ?? 'why' : step.note
        check(this.#model.decide(asker, id, step.verdict, note), await call(step.who as Who, 'POST', `/api/${step.verdict}/${id}`, { note }), step)
      } else {
        check(this.#model.done(asker, id, step.key, step.body), await call(step.who as Who, 'POST', `/api/done/${id}`, step.body, this.#headers(step.key)), step)
      }
    }
  }

  async #pass (step: Extract<Step, { op: 'pass' }>): Promise<void> {
    const asker = agents[step.who]!
    const body = JSON.stringify({ task: step.task, require_human: step.human, expires_in: step.seconds })
    const expected = this.#model.pass(asker, step.key, step.human, body)
    const answer = await this.#t.call(step.who as Who, 'POST', '/api/pass', body, this.#headers(step.key))
    check(expected, answer, step)
    if (expected.status !== 201 || expected.replayed) return
    const id = answer.json().handoff_id
    this.#model.made(asker, id, step.human, step.seconds * 1000)
    this.#ids.push(id)
  }

  /** Sequences share a Redis, so of the list those count that this one passed. */
  async #list (step: Extract<Step, { op: 'list' }>): Promise<void> {
    const { items, next_cursor: next } = (await this.#t.call(step.who as Who, 'GET', '/api/approvals?limit=100')).json()
    const listed = items.map(({ handoff_id: id }: { handoff_id: string }) => id).filter((id: string) => this.#ids.includes(id)).sort()
    const expected = this.#model.waiting(agents[step.who]!)
    if (next === null && listed.join() !== expected.join()) throw new Error(`${JSON.stringify(step)}\n expected ${expected}\n got ${listed}`)
  }

  #id (target: number): string {
    return this.#ids[target] ?? unknownId
  }

  #headers (key: string | undefined): Record<string, string> {
    return key === undefined ? {} : { 'idempotency-key': this.#scope + key }
  }
}

function check (expected: Expected, answer: Awaited<ReturnType<TestApp['call']>>, step: Step): void {
  const body = answer.json()
  const seen = {
    status: answer.statusCode,
    ...(expected.code === undefined ? {} : { code: body.code }),
    ...(expected.replayed === undefined ? {} : { replayed: answer.headers['idempotency-replayed'] === 'true' }),
    ...(expected.members === undefined ? {} : { members: Object.fromEntries(Object.keys(expected.members).map(name => [name, body[name]])) }),
  }
  if (JSON.stringify(sorted(seen)) !== JSON.stringify(sorted(expected))) {
    throw new Error(`${JSON.stringify(step)}\n expected ${JSON.stringify(expected)}\n got ${JSON.stringify(seen)}`)
  }
}

function sorted (value: object): object {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1))
}

const sequences = isWhole ? 1500 : 200

t.test(`${sequences} random sequences agree with the model`, { timeout: 300_000 }, async t => {
  const app = await testApp(t, {}, { workTtl })
  let number = 0
  // Ahead of the true time, so that no key's own TTL comes into it.
  const start = Date.now() + 3600_000
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 24 }), async steps => {
    await app.setClock(start)
    const run = new Run(app, start, ++number)
    for (const step of steps) await run.take(step)
  }), { numRuns: sequences })
  t.ok(number >= sequences, `${number} sequences`)
  const forgotten = Object.entries(await app.dump()).filter(([key, { expires }]: [string, any]) => key.includes(':h:') && !(expires > 0))
  t.strictSame(forgotten, [], 'every handoff has a TTL')
})
