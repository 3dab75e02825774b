import { Unavailable } from '../core/errors.ts'
import { members } from '../core/members.ts'
import { isStatus, noExtra, personMembers } from '../core/model.ts'
import type { Approval, Ask, AskState, Decision, Extra, HandoffRecord } from '../core/model.ts'
import { isSealed } from '../core/payload-keys.ts'
import type { Seal } from '../core/seal.ts'
import type { Outcome, ScriptName } from '../redis/outcomes.ts'

/** Reads the scripts' replies. lua/lib/record.lua says what their words mean. */

/** A script's replies, without those that its lane, `tagged` or a seal handles: they go no further. */
export type Replied<Name extends ScriptName> =
  Exclude<Outcome<Name>, 'late' | 'newer' | 'full' | 'locked' | 'origin'>

/** A script's refusals of an operation: its replies without these. */
export type Refused<Name extends ScriptName, Else extends Replied<Name>> = Exclude<Replied<Name>, Else>

/**
 * Why an operation was refused: the error's code, and the handoff as the script found it; null if there is none.
 * `isLocked`: this replica doesn't have the key of the decision's texts.
 */
export interface RefusedReply<Code extends string> { outcome: Code, seen: Seen | null, isLocked?: boolean }

/** Agents' texts: the error given to fail or the reason given to decline, the reason given to cancel, the progress. */
export interface AgentTexts {
  fault: string | null
  cancelReason: string | null
  progress: { at: number, text: string } | null
}
/** A handoff as a script found it. The decision is there if it says when the handoff ended, or if it was asked for. */
export interface Seen { now: number, record: HandoffRecord, decision: Decision | null }

/**
 * A script's reply: its tag as text, then the parts that the script's header describes. The array, which has no other
 * user, is changed in place. `Tag` is what its header may reply, where its caller distinguishes that.
 * @throws {Unavailable} if a newer version of the service wrote the record, or if Redis is full
 */
export function tagged<Tag extends string = string> (reply: unknown): [Tag, ...unknown[]] {
  const parts = reply as [Buffer | string, ...unknown[]]
  parts[0] = parts[0].toString('latin1')
  if (parts[0] === 'newer') throw new Unavailable(ofNewerVersion)
  if (parts[0] === 'full') throw new Unavailable('Redis is full, and this would make it larger')
  return parts as [Tag, ...unknown[]]
}

const ofNewerVersion = 'a newer version of the service wrote this handoff; a replica of that version serves it'

/**
 * Reads a refusal, which has the same form in every script: `{code, now, record, extra, decision}`, or the code alone.
 */
export function readRefusal<Code extends string> (
  [outcome, now, record, extra, decision]: unknown[], seal: Seal
): RefusedReply<Code> {
  if (outcome === 'locked') throw seal.lacks(String(now))
  const seen = now === undefined ? null : readSeen(now, record, extra, decision, seal)
  return { outcome: outcome as Code, seen, isLocked: seal.isLocked }
}

/** @param seal the handoff's: it learns here what the texts are bound to */
export function readSeen (now: unknown, record: unknown, extra: unknown, decision: unknown, seal: Seal): Seen {
  const parsed = sealedRecord(record, extra, seal)
  return { now: now as number, record: parsed, decision: parseDecision(decision, seal) }
}

/** The same of the record alone. */
export function sealedRecord (text: unknown, extra: unknown, seal: Seal): HandoffRecord {
  const record = parseRecord(text, extra)
  if (record.extra.first !== undefined) seal.first = record.extra.first
  seal.isOfSealed = record.extra.sealedBy !== undefined
  return record
}

/**
 * Parses field `s` of a handoff's hash, and its field `x` if it has one.
 * @throws {Unavailable} if a newer version of the service wrote it
 */
export function parseRecord (text: unknown, extra: unknown): HandoffRecord {
  const [mark, approval, createdAt, expiresAt, passedBy, , caughtAt, deadline, caughtBy, , completedAt] =
    String(text).split(' ')
  const status = known.test(mark!) ? mark!.slice(2) : mark
  if (!isStatus(status)) throw new Unavailable(ofNewerVersion)
  return {
    status,
    approval: approval as Approval,
    createdAt: Number(createdAt),
    expiresAt: Number(expiresAt),
    passedBy: passedBy as string,
    caught: caughtAt === undefined
      ? null
      : { at: Number(caughtAt), deadline: Number(deadline), by: caughtBy as string },
    completedAt: completedAt === undefined ? null : Number(completedAt),
    extra: extra == null ? noExtra : parseExtra(String(extra)),
  }
}

/** The versions of records that have a field x. */
const known = /^[2-5]:/

/** Its members are set one by one. */
type Found = Extra & Record<string, unknown>

/** The words of field x that pass doesn't give: lua/lib/record.lua says what each letter means there. */
const letters: Record<string, (value: string, extra: Found) => unknown> = {
  r: (value, extra) => { extra.root = value },
  g: (value, extra) => { extra.hops = Number(value) },
  c: (value, extra) => { extra.marks = value },
  n: (value, extra) => { extra.attempt = Number(value) },
  E: (value, extra) => { extra.sealedBy = value },
  F: (value, extra) => { extra.first = value },
  o: (value, extra) => { extra.reissueOf = value },
  i: (value, extra) => { extra.reissuedAs = value },
  h: (value, extra) => { extra.heartbeatDeadline = Number(value) },
  f: (value, extra) => { extra.extended = true },
  q: (value, extra) => { extra.cancelRequestedAt = Number(value) },
  e: (value, extra) => { extra.endedAt = Number(value) },
  y: (value, extra) => { extra.endedBy = value },
  v: (value, extra) => { extra.heartbeatAt = Number(value) },
  K: (value, extra) => {
    const [at, by] = value.split('/') as [string, string]
    extra.checkpoint = { at: Number(at), by }
  },
  S: (value, extra) => { extra.schedule = value },
  T: (value, extra) => { extra.scheduledFor = Number(value) },
  N: (value, extra) => { extra.worker = value },
  P: (value, extra) => { extra.messageParts = value },
  z: (value, extra) => { extra.ask = parseAsk(value) },
  W: (value, extra) => { extra.hasDependents = true },
}
for (const row of Object.values(members)) {
  if (row.kept !== 'word' && row.kept !== 'made') continue
  const { letter, unit, key } = row
  if (key !== undefined) letters[letter] = (value, extra) => { extra[key] = unit!.read(value, extra[key]) }
}

const askLetters: Record<string, AskState> = { o: 'open', a: 'answered', e: 'expired', w: 'withdrawn' }

/** The word of the question. */
function parseAsk (word: string): Ask {
  const [id, of, askedAt, expiresAt, stands, by] = word.split('/') as [string, string, string, string, string, string?]
  const state = askLetters[stands.charAt(0)]!
  return {
    id,
    of: of === 'r' ? 'passer' : 'person',
    askedAt: Number(askedAt),
    expiresAt: Number(expiresAt),
    state,
    endedAt: state === 'open' ? null : Number(stands.slice(1)),
    answeredBy: by ?? null
  }
}

export function parseExtra (text: string): Extra {
  const extra: Found = {}
  for (const word of text.split(' ')) letters[word.charAt(0)]?.(word.slice(1), extra)
  return extra
}

/** Parses field `d`; null if it isn't decided. Where its texts are locked, there are none. */
export function parseDecision (text: unknown, seal: Seal): Decision | null {
  if (text == null) return null
  const [at, by, token, ...note] = String(text).split(' ')
  const [, given, person, word] = /^[^/]+\/([^.]*)(?:\.([^.]*)(?:\.(.+))?)?$/.exec(token!) ?? []
  const digest = given && seal.tryText('digest', given)
  const signature = word && seal.tryText('signature', word)
  return {
    at: Number(at),
    by: by as string,
    person: personMembers(person),
    note: seal.tryText('note', note.join(' ')) ?? 'null',
    ...digest && { digest },
    ...signature && { signature }
  }
}

/**
 * The beginning of a task, a JSON string, as taskOf of lua/lib/record.lua gives it. Null if it isn't there, or is
 * locked.
 */
export function taskBeginning (text: Buffer | null, seal: Seal): Buffer | null {
  if (text == null || !isSealed(text)) return text ?? null
  const payload = seal.tryBeginning('payload', text)
  return payload && payload.subarray('"task":'.length, '"task":'.length + 2440)
}

export function textOf (bytes: unknown): string | null {
  return bytes == null ? null : String(bytes)
}

/** Field `g`. */
export function parseProgress (text: string | null, seal: Seal): AgentTexts['progress'] {
  if (text === null) return null
  const space = text.indexOf(' ')
  const said = seal.tryText('progress', text.slice(space + 1))
  return said === null ? null : { at: Number(text.slice(0, space)), text: said }
}

/** Where its callback goes, and how those stand that were to be delivered. `at` in milliseconds. */
export interface CallbackStands {
  url: string
  pending: number
  delivered: number
  failed: number
  last: { status: number | null, error: string | null, at: number } | null
}

/** Fields `o` and `O`; null if there is no callback. */
export function readCallback ([target, counts]: readonly unknown[]): CallbackStands | null {
  if (target == null) return null
  const [url] = String(target).split(' ', 1) as [string]
  const [pending, delivered, failed, status, error, at] = String(counts ?? '0 0 0 - - -').split(' ') as [
    string, string, string, string, string, string
  ]
  return {
    url,
    pending: Number(pending),
    delivered: Number(delivered),
    failed: Number(failed),
    last: at === '-'
      ? null
      : { status: status === '-' ? null : Number(status), error: error === '-' ? null : error, at: Number(at) },
  }
}
