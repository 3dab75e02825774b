import { createHash } from 'node:crypto'
import type { Agent, Expected, Model } from './model.ts'
import { digestOf } from './modelled.ts'
import type { Passed } from './modelled.ts'
import { digest, payload, task } from './moments.ts'
import type { Hash as Stored } from './moments.ts'
import {
  approve, cancel, catchIt, decline, done, fail, heartbeat, inspect, lineage, pass, read, refused, reissue, reject, status, sweep, tenant, waiting,
} from './scripts.ts'
import type { Raw } from './scripts.ts'
import { stored } from './stored.ts'

/** What is asked of the scripts and of the model alike: `ask` of a script, and what it should reply, by the model, which then has it done. */
export interface Request {
  name: string
  /** @param now also the call's deadline, unless that is given */
  ask (on: Raw, now: number, deadline?: number): Promise<unknown>
  told (model: Model, id: string): unknown
}

/** A hash, in whose fields that are left out replies have null. */
type Hash = { [K in keyof Stored]: Stored[K] | null } & { s: string }

/** The agent `operator` has the scope `operate`. */
const who = (name: string): Agent => ({ tenant, name, operates: name === 'operator' })
const operator = (name: string) => who(name).operates ? 1 : 0

/** The hash of one of the model's handoffs. */
function hashIn (model: Model, id: string): Stored | undefined {
  const handoff = model.get(id)
  return handoff && stored(handoff, model.now).hash
}

/** The reply to what the model answers so; `succeeded` says it of a success. */
function replyTo (model: Model, id: string, answered: (model: Model) => Expected, succeeded: (after: Hash, isReplayed: boolean) => unknown[]): unknown[] {
  const hash = hashIn(model, id)
  const { code, replayed } = answered(model)
  if (code !== undefined) return refused(code, { now: model.now, ...hash && { hash } })
  return succeeded(hashIn(model, id)!, replayed === true)
}

const judged = (code: string, { now }: Model, { s, x = null }: Hash) => [code, now, s, x]

/** The windows and attempts that are passed, as the script reads them. */
function optionsOf ({ delay, work_within: work, heartbeat_within: beat, max_attempts: most, retry_delay: pause, words = '', schema }: Passed): string {
  const ms = (letter: string, seconds: number | undefined) => seconds === undefined ? '' : ` ${letter}${Math.round(seconds * 1000)}`
  return ms('w', work) + ms('b', beat) + ms('a', delay) + (most === undefined ? '' : ` m${most}`) + ms('d', pause) + words + (schema === undefined ? '' : ` z${schema.length}`)
}

/** Passes the handoff for the first time. @param options durations in seconds; left out is a plain one */
export function passing (options: Partial<Passed> = {}): Request {
  const passed: Passed = { task: JSON.parse(task), require_human: false, expires_in: 1, ...options }
  return {
    name: `pass ${JSON.stringify(options)}`,
    ask: (on, now, deadline = now) => pass(on, now, { agent: 'passer', token: 'ptok', deadline }, passed.require_human, payload + (passed.schema ?? ''), optionsOf(passed)),
    told (model, id) {
      const { now } = model
      model.pass(who('passer'), undefined, JSON.stringify(passed), id)
      return ['passed', now, now + 1000, ...passed.delay === undefined ? [] : [now + Math.round(passed.delay * 1000)]]
    },
  }
}

/** Passes what is there already: no state is changed by that. */
export function passingAgain (token: string, requireHuman: boolean): Request {
  return {
    name: `pass again: ${token}, ${requireHuman}`,
    ask: (on, now, deadline = now) => pass(on, now, { agent: 'B', token, deadline }, requireHuman),
    told (model, id) {
      const { reissueOf, createdAt, expiresAt, availableAt } = model.get(id)!.first
      // Nobody passed a later attempt, so it is nobody's answer.
      if (token !== 'ptok' || reissueOf !== undefined) return ['reused']
      return ['replayed', createdAt, expiresAt, ...availableAt === undefined ? [] : [availableAt]]
    },
  }
}

/** What a catch gives: the decision, and where the handoff isn't plain its record, its extra and its schema. */
function given (reply: string, { s, p, d = null, x = null, r = null }: Hash): unknown[] {
  return [reply, Number(s.split(' ')[2]), p, d, null, x === null ? null : s, x, r]
}

export const catching = (agent = 'A', token = 'ctok'): Request => ({
  name: `catch by ${agent}, ${token}`,
  ask: (on, now, deadline = now) => catchIt(on, now, { agent, token, deadline }),
  told: (model, id) => replyTo(model, id, () => model.catch(who(agent), id, token), (after, isReplayed) => given(isReplayed ? 'replayed' : 'caught', after)),
})

/** @param seen when what the person saw was passed, and its digest; empty where it isn't said */
export const deciding = (verdict: 'approve' | 'reject', agent = 'approver', token = 'dectok', note = '"as it was said"', seen: number | '' = '', itsDigest = ''): Request => ({
  name: `${verdict} by ${agent}, ${token}, ${seen}, ${itsDigest}`,
  ask: (on, now, deadline = now) => (verdict === 'approve' ? approve : reject)(on, now, { agent, token, deadline }, note, seen, itsDigest),
  told (model, id) {
    const isAnother = seen !== '' && seen !== model.get(id)?.first.createdAt
    const itsOwn = itsDigest === digest ? digestOf(JSON.parse(task)) : 'another'
    const answered = () => model.decide(who(agent), id, verdict, note, isAnother ? 'another' : itsDigest === '' ? undefined : itsOwn, token)
    return replyTo(model, id, answered, (after, isReplayed) => isReplayed ? ['replayed', Number(after.d!.split(' ')[0])] : [verdict === 'approve' ? 'approved' : 'rejected', model.now])
  },
})

/** @param extendBy milliseconds */
export const beating = (agent = 'A', extendBy: number | '' = '', progress = ''): Request => ({
  name: `heartbeat by ${agent}, ${extendBy}, ${progress}`,
  ask: (on, now, deadline = now) => heartbeat(on, now, { agent, deadline }, extendBy, progress),
  told (model, id) {
    const said = { ...extendBy !== '' && { extend_by: extendBy / 1000 }, ...progress !== '' && { progress: JSON.parse(progress) } }
    return replyTo(model, id, () => model.heartbeat(who(agent), id, said), ({ c = null }) => {
      const { caught, cancelRequestedAt } = model.get(id)!
      return ['caught', caught!.deadline, caught!.heartbeat ?? null, cancelRequestedAt === undefined ? 0 : 1, c]
    })
  },
})

/** Done with a result, failed with an error, or declined with a reason: JSON text. */
function ending (name: 'done' | 'fail' | 'decline', agent: string, token: string, told: string, mayRetry: boolean): Request {
  const status = operations[name]
  return {
    name: `${name} by ${agent}, ${token}, ${told}, ${mayRetry}`,
    ask (on, now, deadline = now) {
      const asking = { agent, token, deadline }
      if (name === 'done') return done(on, now, asking, told, 'itsschema')
      return name === 'fail' ? fail(on, now, asking, told, mayRetry ? 1 : 0) : decline(on, now, asking, told)
    },
    told: (model, id) => replyTo(model, id, () => model.finish(who(agent), id, token, { name, body: '', told, mayRetry }), (after, isReplayed) => {
      if (isReplayed) return judged('replayed', model, after)
      return name === 'done' ? [status, model.now] : [status, model.now, model.get(id)!.reissuedAs ?? null]
    }),
  }
}
const operations = { done: 'done', fail: 'failed', decline: 'declined' }
export const finishing = (agent = 'A', token = 'dtok', result = '{"a":1}') => ending('done', agent, token, result, false)
export const failing = (agent = 'A', token = 'ftok', mayRetry = true) => ending('fail', agent, token, '{"message":"as it was said"}', mayRetry)
export const declining = (agent = 'A', token = 'letok') => ending('decline', agent, token, '"as it was said"', true)

/** @param reason JSON text; empty for none */
export const cancelling = (agent = 'passer', force = false, reason = ''): Request => ({
  name: `cancel by ${agent}, ${force}, ${reason}`,
  ask: (on, now, deadline = now) => cancel(on, now, { agent, deadline }, force ? 1 : 0, reason, operator(agent)),
  told (model, id) {
    const wasCancelled = model.get(id)?.status === 'cancelled'
    const answered = () => model.cancel(who(agent), id, { force, ...reason !== '' && { reason } })
    return replyTo(model, id, answered, after => judged(wasCancelled ? 'replayed' : model.get(id)!.status === 'cancelled' ? 'cancelled' : 'requested', model, after))
  },
})

export const reissuing = (agent = 'passer'): Request => ({
  name: `reissue by ${agent}`,
  ask: (on, now, deadline = now) => reissue(on, now, { agent, deadline }, operator(agent)),
  told (model, id) {
    model.all()
    const isTaken = model.get(id)?.status === 'caught'
    return replyTo(model, id, () => model.reissue(who(agent), id), (_, isReplayed) => {
      const next = model.get(id)!.reissuedAs!
      const { s, x } = hashIn(model, next)!
      return isReplayed ? ['replayed', next, s, x] : ['reissued', next, s, x, isTaken ? 1 : 0]
    })
  },
})

export const sweeping: Request = {
  name: 'sweep',
  // When it is to look again is checked by test/lua/due.test.ts.
  ask: async (on, now, deadline = now) => (await sweep(on, now, 10, deadline) as unknown[]).map((part, n) => n === 4 ? null : part),
  told (model) {
    const before = model.all().filter(({ isLive }) => isLive)
    const looked = before.filter(({ dueAt }) => dueAt <= model.now)
    model.sweep(() => true)
    const expired = before.filter(({ isLive }) => !isLive)
    const stalled = expired.filter(({ ended }) => ended!.because === 'stalled')
    const late = expired.filter(({ ended }) => ended!.because !== 'stalled')
    const again = (some: typeof expired) => some.filter(({ reissuedAs }) => reissuedAs).length
    const due = model.all().filter(({ isLive }) => isLive)
    return ['swept', looked.length, expired.length, due.length, null, stalled.length, again(stalled), again(late)]
  },
}

/** What reads changes nothing, and finds what lies there. @param find the reply, by the hash */
const reading = (name: string, ask: Request['ask'], find: (model: Model, id: string, hash: Hash) => unknown[]): Request => ({
  name,
  ask,
  told (model, id) {
    const hash = hashIn(model, id)
    return hash === undefined ? ['not_found'] : find(model, id, hash)
  },
})

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex')
const isDone = ({ s }: Hash) => /^(2:)?done /.test(s)

export const readings: readonly Request[] = [
  reading('status', status, ({ now }, _, { s, p, d = null, x, e = null, c = null, g = null, ...hash }) =>
    ['found', now, s, isDone({ s }) && p ? p : null, d, ...x === undefined ? [] : [x, e, c, g]]),
  reading('inspect', inspect, ({ now }, _, { s, p, d = null, h = null, x = null, r = null }) => ['found', now, s, isDone({ s }) || !p ? null : p, d, h, x, r]),
  reading('lineage', lineage, (model, id, { s, x = null }) => {
    const found = ['found', model.now, s, x]
    // Where the line's marks are there is no need of one more, and what is done has no payload.
    if (isDone({ s }) || / c[0-9a-f]/.test(x ?? '')) return found
    let last = model.get(id)!
    while (last.reissuedAs) last = model.get(last.reissuedAs)!
    return last.hasPayload ? [...found, sha1(`passer - ${sha1(payload)}`).slice(0, 12)] : found
  }),
  ...['A', 'B', 'passer'].map(agent => reading(`read by ${agent}`, (on, now) => read(on, now, agent), (model, id) =>
    // The model has no read: it is refused what a heartbeat is, and that changes nothing then.
    replyTo(model, id, () => model.isHeldBy(who(agent), id), after => given('caught', after)))),
  {
    name: 'waiting',
    ask: (on, now) => waiting(on, now, 10),
    told (model) {
      const listed = model.all().filter(({ status, approval }) => status === 'pending' && approval === 'waiting')
      return ['listed', model.now, null, null, ...listed.flatMap(({ first: { id } }) => {
        const { s, t, x = null, h = null, p } = hashIn(model, id)!
        return [`${tenant}:${id}`, s, x, h, t, p!.length]
      })]
    },
  },
]
