import { LRUCache } from 'lru-cache'
import { Problem } from '../../core/errors.ts'
import { cutFiles } from '../../core/files.ts'
import { iso } from '../../core/iso.ts'
import { membersOf } from '../../core/nested.ts'
import { isAddressed, statusAt } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import { maxCheckpointBytes } from '../../core/schemas/attempts.ts'
import type { Attempt, EverythingReads, EverythingReply } from '../../store/everything.ts'
import type { HandoffPlace } from '../../store/handoffs.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import { endOf, itemText, payloadMembers, placeOf, refusal, withoutTexts } from './answers.ts'

/** How many bytes of texts one answer has. */
const maxBytesOfTexts = 4 * 1024 * 1024
/** How many attempts one answer has: the last ones. */
const shownAttempts = 50
/** In which time a reader's look at a handoff is logged once, in milliseconds; and how many looks are remembered. */
const looksLogged = { within: 600_000, max: 10_000 }

/** What a reader gets. `isFirst`: it is to be logged, since this reader hasn't read this handoff lately. */
interface ReadAnswer { answer: Buffer, isFirst: boolean }

/** All of one handoff, for those whose keys may read everything. */
export class EverythingService {
  readonly #everything: EverythingReads
  readonly #reads: Reads
  readonly #largest: number
  readonly #looks = new LRUCache<string, true>({ max: looksLogged.max, ttl: looksLogged.within, ttlAutopurge: false })

  /** @param largest how many bytes a payload may have */
  constructor (everything: EverythingReads, reads: Reads, largest: number) {
    this.#everything = everything
    this.#reads = reads
    this.#largest = largest
  }

  /** Reading it changes nothing. @throws {Problem} not_found, not_addressee */
  async read (caller: Caller, id: string, requester: Requester): Promise<ReadAnswer> {
    const place = placeOf(caller, id)
    const look = async (maxBytes?: number, now = caller) => {
      const reply = await this.#everything.read(place, maxBytesOfTexts, maxBytes)
      if (reply.outcome === 'not_found') throw new Problem('not_found')
      if (!isAddressed(now, reply.record)) throw refusal({ outcome: 'not_addressee', seen: reply })
      return reply
    }
    const most = this.#largest + 3 * Math.min(this.#largest, maxBytesOfTexts) + maxCheckpointBytes
    const reply = await this.#reads.read(place, requester, look, most)
    const attempts = await this.#attempts(place, requester)
    return { answer: everythingText(id, reply, attempts), isFirst: this.#isFirst(caller, id) }
  }

  /** The last ones, in their order. */
  async #attempts (place: HandoffPlace, requester: Requester): Promise<string[]> {
    const read = (id: string, direction: 'later' | 'earlier', limit: number) => {
      const from = { ...place, id }
      return this.#reads.run({ ...from, requester }, () => this.#everything.attempts(from, direction, limit))
    }
    let all: string[] = []
    let earlier: string | undefined
    for (let next: string | null = place.id; next !== null;) {
      const part = await read(next, 'later', shownAttempts)
      earlier ??= part.items[0]?.record.extra.reissueOf
      all = [...all, ...part.items.map(item => attemptText(item, part.now))].slice(-shownAttempts)
      next = part.next
    }
    if (earlier === undefined || all.length === shownAttempts) return all
    const { items, now } = await read(earlier, 'earlier', shownAttempts - all.length)
    return [...items.map(item => attemptText(item, now)).reverse(), ...all]
  }

  #isFirst ({ tenant, agent }: Caller, id: string): boolean {
    const look = `${tenant} ${agent} ${id}`
    if (this.#looks.has(look)) return false
    this.#looks.set(look, true)
    return true
  }
}

function attemptText ({ id, record, decision }: Attempt, now: number): string {
  const end = record.completedAt ?? endOf(record, now)?.at ?? (record.status === 'rejected' ? decision?.at : undefined)
  return JSON.stringify({
    handoff_id: id,
    attempt: record.extra.attempt ?? 1,
    status: statusAt(record, now),
    worker: record.extra.worker ?? null,
    ended_at: end === undefined ? null : iso(end),
  })
}

type AllOfIt = Extract<EverythingReply, { outcome: 'found' }>

/** Status's members, then all texts, literally, and the attempts. */
function everythingText (id: string, reply: AllOfIt, attempts: readonly string[]): Buffer {
  const { record, texts, fault, result, question, answer, checkpoint } = reply
  const isFailed = record.status === 'failed'
  // A reason is short, and status's. An error may be long.
  const reason = isFailed || !Buffer.isBuffer(fault) ? null : fault.toString()
  const status = itemText(id, id, {
    ...reply, ...withoutTexts, after: null, texts: { ...texts, fault: reason }
  }, 'none')
  const parts: Buffer[] = [status.subarray(0, -1), Buffer.from(`,"passed_by":"${record.passedBy}"`)]
  let room = maxBytesOfTexts
  const add = (name: string, text: Buffer | number | null | undefined) => {
    if (text === null || text === undefined) return parts.push(Buffer.from(`,"${name}":null`))
    if (typeof text === 'number' || text.length > room) return parts.push(Buffer.from(`,"${name}_omitted":true`))
    room -= text.length
    parts.push(Buffer.from(`,"${name}":`), text)
  }
  const payload = reply.payload === null ? null : membersOf(Buffer.concat([before, reply.payload, behind]))
  for (const [name] of payloadMembers) add(name, payload?.raw(name))
  const files = payload?.raw('files')
  if (files !== undefined) add('files', files)
  const ended = Buffer.isBuffer(result) ? cutFiles(result, 'result_files') : { before: result, files: null }
  add('result', ended.before)
  if (ended.files !== null) add('result_files', ended.files)
  add('error', isFailed ? fault : null)
  add('question', question)
  add('answer', answer)
  if (texts.progress === null) add('progress', null)
  add('checkpoint', checkpoint)
  const by = record.extra.checkpoint?.by
  if (by !== undefined) parts.push(Buffer.from(`,"checkpoint_by":"${by}"`))
  parts.push(Buffer.from(`,"attempts":[${attempts.join(',')}]}`))
  return Buffer.concat(parts)
}

const [before, behind] = [Buffer.from('{'), Buffer.from('}')]
