import type { ScriptName } from '../../../src/redis/scripts.ts'
import type { Database, Hash } from './database.ts'

/**
 * A model of the scripts in lua/ that move handoffs, on a Database, for handoffs without field x, as the simulator's clients pass them.
 * test/faults/simulation.test.ts runs model and scripts side by side, the latter on a real Redis, and compares every reply and all data.
 */

export type Argument = string | Buffer
/** A reply in RESP2; tags are bytes, other texts may be strings. */
export type Reply = Array<Buffer | string | number | null>
/** @param now the server's clock in whole milliseconds */
export type Script = (db: Database, now: number, keys: readonly string[], args: readonly Argument[]) => Reply
export type Modelled = Extract<ScriptName, 'pass' | 'catch' | 'done' | 'status' | 'approve' | 'reject' | 'sweep'>

const nothing = Buffer.alloc(0)
const tagBytes = new Map<string, Buffer>()

function tagged (tag: string, ...rest: Array<Buffer | string | number | null>): Reply {
  let bytes = tagBytes.get(tag)
  if (bytes === undefined) tagBytes.set(tag, bytes = Buffer.from(tag))
  return [bytes, ...rest]
}

export const scripts: Readonly<Record<Modelled, Script>> = {
  pass (db, now, keys, args) {
    const [key, due, waiting] = keys as [string, string, string | undefined]
    const [deadline, token, passedBy, expiresIn, retention, member, options] = args as string[] as [string, string, string, string, string, string, string]
    const payload = args[7] as Buffer
    if (now > Number(deadline)) return tagged('late')
    const before = db.hash(key)
    if (before !== undefined) {
      const [, , created, expires, , madeBy] = before.s.split(' ')
      return operationOf(madeBy) === operationOf(token) ? tagged('replayed', Number(created), Number(expires)) : tagged('reused')
    }
    const expires = now + Number(expiresIn)
    const s = `pending ${waiting === undefined ? 'none' : 'waiting'} ${now} ${expires} ${passedBy} ${token}`
    const hash: Hash = { s, p: payload, expires: expires + Number(retention) }
    const [, listed, digest] = / l(\d+) h(\S+)/.exec(options) ?? []
    db.set(key, waiting === undefined ? hash : { ...hash, t: Buffer.concat([payload.subarray(7, 7 + Number(listed)), Buffer.from('"')]), h: digest! })
    db.add(due, expires, member)
    if (waiting !== undefined) db.add(waiting, now, member)
    return tagged('passed', now, expires)
  },

  catch (db, now, keys, args) {
    const [key, due] = keys as [string, string]
    const [deadline, token, agent, workTtl, retention, member] = args as string[] as [string, string, string, string, string, string]
    if (now > Number(deadline)) return tagged('late')
    const hash = db.hash(key)
    if (hash === undefined) return tagged('not_found')
    const [status, approval, created, expires, passedBy, passToken, , workDeadline, by, madeBy] = hash.s.split(' ') as [string, ...string[]]
    const refused = (code: string) => refusal(code, now, hash)
    if (status === 'caught') {
      if (now >= Number(workDeadline)) return refused('expired')
      if (by !== agent || madeBy !== token) return refused('already_caught')
      return tagged('replayed', Number(created), hash.p ?? null, hash.d ?? null, traceOf(passToken), null, null, null)
    }
    if (status === 'done') return refused('already_done')
    if (status !== 'pending') return refused(status)
    if (now >= Number(expires)) return refused('expired')
    if (approval === 'waiting') return refused('approval_required')
    const until = now + Number(workTtl)
    const s = `caught ${approval} ${created} ${expires} ${passedBy} ${passToken} ${now} ${until} ${agent} ${token}`
    db.set(key, { ...hash, s, expires: until + Number(retention) })
    if (until < Number(expires)) db.add(due, until, member)
    return tagged('caught', Number(created), hash.p ?? null, hash.d ?? null, traceOf(passToken), null, null, null)
  },

  done (db, now, keys, args) {
    const [key, due] = keys as [string, string]
    const [deadline, token, agent, retention, member] = args as string[] as [string, string, string, string, string]
    const result = args[6] as Buffer
    if (now > Number(deadline)) return tagged('late')
    const hash = db.hash(key)
    if (hash === undefined) return tagged('not_found')
    const [status = '', , , expires, , , , workDeadline, by, , , madeBy] = hash.s.split(' ')
    const refused = (code: string) => refusal(code, now, hash)
    if (status === 'done' && by === agent && madeBy === token) return refused('replayed')
    if (status === 'pending') return refused(now >= Number(expires) ? 'expired' : 'not_caught')
    if (status === 'expired' || status === 'rejected') return refused(status)
    if (status === 'caught' && now >= Number(workDeadline)) return refused('expired')
    if (by !== agent) return refused('not_the_catcher')
    if (status === 'done') return refused('already_done')
    db.set(key, { ...hash, s: `done${hash.s.slice(6)} ${now} ${token}`, p: result, expires: now + Number(retention) })
    db.remove(due, member)
    return tagged('done', now)
  },

  status (db, now, keys) {
    const hash = db.hash(keys[0] as string)
    if (hash === undefined) return tagged('not_found')
    const result = hash.s.startsWith('done ') && hash.p!.length > 0 ? hash.p! : null
    return tagged('found', now, hash.s, result, hash.d ?? null)
  },

  approve (db, now, keys, args) {
    const [key, waiting] = keys as [string, string]
    const [deadline, token, by, member, seen, digest, note] = args as [string, string, string, string, string, string, Argument]
    const hash = db.hash(key)
    const refused = refuseDecision(hash, now, { deadline, token, by, seen, digest })
    if (refused !== null) return refused
    const { t, ...kept } = hash as Hash
    db.set(key, { ...kept, s: `pending approved${kept.s.slice('pending waiting'.length)}`, d: `${now} ${by} ${madeBy(token, digest)} ${note}` })
    db.remove(waiting, member)
    return tagged('approved', now)
  },

  reject (db, now, keys, args) {
    const [key, waiting, due] = keys as [string, string, string]
    const [deadline, token, by, retention, member, seen, digest, note] = args as [string, string, string, string, string, string, string, Argument]
    const hash = db.hash(key)
    const refused = refuseDecision(hash, now, { deadline, token, by, seen, digest })
    if (refused !== null) return refused
    const { t, ...kept } = hash as Hash
    const s = `rejected rejected${kept.s.slice('pending waiting'.length)}`
    db.set(key, { ...kept, s, d: `${now} ${by} ${madeBy(token, digest)} ${note}`, expires: now + Number(retention) })
    db.remove(waiting, member)
    db.remove(due, member)
    return tagged('rejected', now)
  },

  sweep (db, now, keys, args) {
    const due = keys[0] as string
    const [deadline, prefix, limit, naming, retention] = args as [string, string, string, string, string]
    if (now > Number(deadline)) return tagged('late')
    const over = [...db.sorted(due)].filter(([, score]) => score <= now)
    over.sort(([one, a], [other, b]) => a - b || (one < other ? -1 : 1)).splice(Number(limit))
    const expired = over.map(([member]) => member).filter(member => sweepOne(db, now, { due, prefix, member, retention: Number(retention) }))
    const left = db.sorted(due)
    // Redis converts it to an integer.
    const untilDue = left.size === 0 ? null : Math.trunc(Math.min(...left.values()) - now) + 0
    return tagged('swept', over.length, expired.length, left.size, untilDue, 0, 0, 0, ...naming === '1' ? expired : [])
  },
}

/** A pass's token without the traceparent that may follow it. */
function operationOf (token: string | undefined): string | undefined {
  return token?.split('/')[0]
}

/** That traceparent; null if there is none. */
function traceOf (token: string | undefined): string | null {
  return token?.split('/')[1] ?? null
}

/** The part that every refusal has: the record that it is based on. */
function refusal (code: string, now: number, { s, d }: Hash): Reply {
  return tagged(code, now, s, null, ...code === 'rejected' ? [d ?? null] : [])
}

/** A decision's token, with the digest of what was seen if that was sent. */
function madeBy (token: string, digest: string): string {
  return digest === '' ? token : `${token}/${digest}`
}

/** Why it can't be decided; null if it can. */
function refuseDecision (hash: Hash | undefined, now: number, { deadline, token, by, seen, digest }: Record<'deadline' | 'token' | 'by' | 'seen' | 'digest', string>): Reply | null {
  if (now > Number(deadline)) return tagged('late')
  if (hash === undefined) return tagged('not_found')
  const [status, approval, created, expires, passedBy] = hash.s.split(' ')
  if (approval === 'none') return refusal('no_approval_required', now, hash)
  if (hash.d !== undefined) {
    const [decided, , madeBy] = hash.d.split(' ')
    return operationOf(madeBy) === token ? tagged('replayed', Number(decided)) : tagged('already_decided', now, hash.s, null, hash.d)
  }
  if (status === 'expired' || now >= Number(expires)) return refusal('expired', now, hash)
  if (passedBy === by) return refusal('self_approval', now, hash)
  const isAnother = seen !== '' && seen !== created
  return isAnother || (digest !== '' && digest !== hash.h) ? refusal('content_changed', now, hash) : null
}

interface SweptOne { due: string, prefix: string, member: string, retention: number }

/** @returns whether this expired it */
function sweepOne (db: Database, now: number, one: SweptOne): boolean {
  const { due, prefix, member } = one
  const key = `${prefix}h:${member}`
  const hash = db.hash(key)
  const [status = '', approval, , expires, , , , workDeadline] = hash?.s.split(' ') ?? []
  const deadline = status === 'pending' ? expires : status === 'caught' ? workDeadline : undefined
  if (deadline !== undefined && Number(deadline) > now) {
    db.add(due, Number(deadline), member)
    return false
  }
  if (hash !== undefined && deadline !== undefined) {
    const { t, ...kept } = hash
    const s = `expired${hash.s.slice(status.length)}`
    // A handoff that was caught may get a successor, so its payload stays.
    db.set(key, status === 'caught' ? { ...kept, s } : { ...kept, s, p: nothing })
  }
  const again = hash === undefined || approval === 'waiting' ? nextLook(db, now, one) : null
  const waiting = `${prefix}w:${member.split(':', 1)[0]}`
  const listed = approval === 'waiting' && db.sorted(waiting).has(member)
  if (again === null || listed) {
    db.remove(due, member)
    if (hash === undefined || listed) db.remove(waiting, member)
  } else {
    db.add(due, again, member)
  }
  return deadline !== undefined
}

/** When the sweep looks for a missing handoff again; null if it must be gone by now. */
function nextLook (db: Database, now: number, { due, member, retention }: SweptOne): number | null {
  const score = db.sorted(due).get(member) as number
  const looks = score % 1 * 32
  const pause = 1000 * 2 ** looks
  return now - Math.floor(score) + pause - 1000 < retention ? now + pause + (looks + 1) / 32 : null
}
