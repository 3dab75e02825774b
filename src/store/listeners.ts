import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { memberOf } from './key-names.ts'
import { homeTagOf } from './partitions.ts'
import type { KeyNames } from './key-names.ts'
import type { InboxPlace } from './inboxes.ts'
import type { HandoffPlace } from './handoffs.ts'
import { tagged, textOf } from './replies.ts'

/** For how long what a replica noted counts, in milliseconds. */
const noteLifetime = 10_000

/** Who asks at an inbox. Times are milliseconds before the note; `caught`: null if it caught nothing there. */
export interface AskingWorker {
  agent: string
  /** What it calls itself; null if it says nothing. */
  worker: string | null
  /** How many of its requests wait there. */
  waiting: number
  seen: number
  caught: number | null
}

/** By inbox. */
export type Notes = ReadonlyMap<string, readonly AskingWorker[]>

/** What another replica noted, and when (ms, Redis's clock). */
interface Noted { at: number, notes: Notes }

/** A caught handoff of an inbox: by whom, when, and when its last heartbeat came (ms). */
interface Working { agent: string, worker: string | null, caughtAt: number, heardAt: number | null }

/** Who waits for inboxes, and who works on what is caught of them. One method per script. */
export class InboxListeners {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #tags: readonly string[]
  readonly #replica: string

  /** @param replica what tells this replica from others */
  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, tags: readonly string[], replica: string) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#tags = tags
    this.#replica = replica
  }

  /** Notes the workers of a tenant that this replica knows. No notes: it knows none any more. */
  note (tenant: string, notes: Notes): Promise<unknown> {
    const tag = this.tagOf(tenant)
    const keys = [this.#keyNames.listening(tag, tenant), this.#keyNames.listeningAt(tag, tenant, this.#replica)]
    const texts = [this.#replica, String(noteLifetime), textOfNotes(notes)]
    return this.#lanes.call({ script: this.#scripts.listen, tag, keys, texts, decode: tagged })
  }

  /** What other replicas noted of a tenant, and Redis's time (ms). */
  others (tenant: string): Promise<{ now: number, noted: Noted[] }> {
    const tag = this.tagOf(tenant)
    return this.#lanes.call({
      script: this.#scripts.listeners,
      tag,
      keys: [this.#keyNames.listening(tag, tenant)],
      texts: [String(noteLifetime)],
      decode: reply => readNoted(reply, this.#replica)
    })
  }

  /** Who has handoffs of the inbox caught in this partition, of at most so many handoffs. `isMore`: there are more. */
  working ({ tag, tenant, inbox }: InboxPlace, limit: number): Promise<{ isMore: boolean, all: Working[] }> {
    return this.#lanes.call({
      script: this.#scripts.workers,
      tag,
      keys: [this.#keyNames.inbox(tag, tenant, inbox)],
      texts: [String(limit), this.#keyNames.handoff(tag, '')],
      decode: readWorking
    })
  }

  /**
   * How many can be caught from its inbox before it, of its group; 0 if it can't be caught there yet. How many of its
   * group are caught, and may be; null for any number.
   */
  ahead (
    { tag, tenant, id }: HandoffPlace, inbox: string, group = ''
  ): Promise<{ count: number, caught: number, max: number | null }> {
    return this.#lanes.call({
      script: this.#scripts.position,
      tag,
      keys: [this.#keyNames.inbox(tag, tenant, inbox)],
      texts: [memberOf(tenant, id), group],
      decode: reply => {
        const [, count, caught, max] = tagged(reply)
        return { count: count as number | null ?? 0, caught: caught as number, max: max as number || null }
      }
    })
  }

  tagOf (tenant: string): string {
    return homeTagOf(tenant, this.#tags)
  }
}

/** An inbox, then who asks there: parts between commas. No name has a comma, or begins with =. */
function textOfNotes (notes: Notes): string {
  return [...notes].map(([inbox, all]) => [`=${inbox}`, ...all.map(({ agent, worker, waiting, seen, caught }) =>
    `${agent},${worker ?? ''},${waiting},${Math.round(seen)},${caught === null ? '' : Math.round(caught)}`)].join(' '))
    .join(' ')
}

function notesIn (text: string): Notes {
  const notes = new Map<string, AskingWorker[]>()
  let all: AskingWorker[] = []
  for (const word of text.split(' ')) {
    if (word.startsWith('=')) {
      all = []
      notes.set(word.slice(1), all)
      continue
    }
    const [agent, worker, waiting, seen, caught] = word.split(',') as [string, string, string, string, string]
    all.push({
      agent,
      worker: worker === '' ? null : worker,
      waiting: Number(waiting),
      seen: Number(seen),
      caught: caught === '' ? null : Number(caught)
    })
  }
  return notes
}

function readNoted (reply: unknown, own: string): { now: number, noted: Noted[] } {
  const [, now, ...parts] = tagged(reply)
  const noted: Noted[] = []
  for (let at = 0; at < parts.length; at += 3) {
    if (String(parts[at]) === own) continue
    noted.push({ at: Number(parts[at + 1]), notes: notesIn(String(parts[at + 2])) })
  }
  return { now: now as number, noted }
}

function readWorking (reply: unknown): { isMore: boolean, all: Working[] } {
  const [, , more, ...parts] = tagged(reply)
  const all: Working[] = []
  for (let at = 0; at < parts.length; at += 4) {
    const heard = parts[at + 3]
    all.push({
      agent: String(parts[at]),
      worker: textOf(parts[at + 1]),
      caughtAt: Number(parts[at + 2]),
      heardAt: heard == null ? null : Number(heard)
    })
  }
  return { isMore: more === 1, all }
}
