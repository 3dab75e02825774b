import { TooLarge } from '../core/errors.ts'
import { inboxTag } from '../core/ids.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { SealedMember } from '../core/seal.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { questionIn } from './asks.ts'
import type { AskTexts } from './asks.ts'
import type { HandoffPlace } from './handoffs.ts'
import type { AgentTexts } from './replies.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { parseProgress, readSeen, tagged, textOf } from './replies.ts'
import type { Seen } from './replies.ts'

/** The states of a task, by the letters that they have in Redis (lua/lib/tasks.lua). */
export const taskLetters = {
  s: 'SUBMITTED',
  w: 'WORKING',
  i: 'INPUT_REQUIRED',
  c: 'COMPLETED',
  f: 'FAILED',
  r: 'REJECTED',
  x: 'CANCELED'
} as const
type Letter = keyof typeof taskLetters
export type TaskState = typeof taskLetters[Letter]

/** A task's state, and since when (ms). */
export interface Standing { state: TaskState, since: number }

/** One change of a task. `said`: what an agent or a person said with it, JSON text; null for nothing. */
export interface TaskChange extends Standing {
  number: number
  what: string
  /** The attempt's id. */
  handoff: string
  at: number
  said: string | null
}

/** An A2A task, as its latest attempt has it. The payload is the text of JSON members; null if it wasn't read. */
export interface TaskSeen extends Seen {
  /** The latest attempt's id. */
  id: string
  stands: Standing
  /** The number of its last change. */
  number: number
  payload: Buffer | null
  result: Buffer | null
  fault: string | null
  cancelReason: string | null
  progress: AgentTexts['progress']
  texts: AskTexts | null
  /** How the attempt before ended, while the next one is pending. */
  ended: TaskChange | null
  changes: TaskChange[]
  isLocked: boolean
}

/**
 * What is read of a task: all but its payload, all, or only how it stands; and whether its result is, which it is
 * unless that says no. And its changes after the one with this number. One of many is read without its texts if one
 * of them is locked.
 */
export interface TaskParts { texts: 'most' | 'all' | 'none', result?: boolean, after?: number, isOneOfMany?: boolean }

function textLetters ({ texts, result = true }: TaskParts): string {
  return texts === 'none' ? '-' : `${texts === 'all' ? 'p' : ''}${result ? 'r' : ''}`
}

/** A place in a list of tasks: since when the state holds, the state, and the id. */
type TaskPlace = string

/** Which tasks are listed. `since` in milliseconds. */
interface WantedTasks {
  tenant: string
  inbox: string
  agent: string
  states: readonly TaskState[]
  context?: string | undefined
  since?: number | undefined
}

/** A2A tasks in Redis. Scripts of transitions write them (lua/lib/tasks.lua). */
export class Tasks {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #retention: string
  readonly #payloadKeys: PayloadKeys

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, { retention }: { retention: number },
    payloadKeys = new PayloadKeys()
  ) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#retention = String(retention)
  }

  /** @returns null if there is no such task @throws {TooLarge} it has more bytes */
  read (place: HandoffPlace, parts: TaskParts, maxBytes?: number): Promise<TaskSeen | null> {
    return this.#lanes.call({
      script: this.#scripts.task,
      tag: place.tag,
      keys: [this.channelOf(place)],
      texts: [
        this.#keyNames.handoff(place.tag, memberOf(place.tenant, '')), String(maxBytes ?? Number.MAX_SAFE_INTEGER),
        textLetters(parts), String(parts.after ?? '')
      ],
      decode: reply => {
        const sealOf: SealOf = (id, first) => new Seal(this.#payloadKeys, { ...place, id }, first, parts.isOneOfMany)
        return readTask(reply, sealOf, parts)
      }
    })
  }

  /**
   * Notes which question a message answers.
   * @param message its digest
   * @param question its id; null to look alone, 'none' to forget the note
   * @returns the question that it was noted for before; null for none
   */
  noteAnswer (place: HandoffPlace, message: string, question: string | null): Promise<string | null> {
    return this.#lanes.call({
      script: this.#scripts['task-answer'],
      tag: place.tag,
      keys: [this.channelOf(place)],
      texts: [
        new Seal(this.#payloadKeys, place).marks('message', message.slice(0, 22)).join(),
        question === 'none' ? '-' : question ?? ''
      ],
      decode: reply => {
        const [outcome, known] = tagged(reply)
        return outcome === 'known' ? String(known) : null
      }
    })
  }

  /** The channel for a task's changes. */
  channelOf ({ tag, tenant, id }: HandoffPlace): string {
    return this.#keyNames.task(tag, memberOf(tenant, id))
  }

  /**
   * A page, those first whose state began last.
   * @param behind where to go on @param most how many are counted at most, and how many are looked at for the page
   * @returns `looked`: where to go on if that wasn't the end of the list, but no more were looked at
   */
  async list (
    { tenant, inbox, agent, states, context = '', since }: WantedTasks, behind: TaskPlace | undefined, limit: number,
    most: number
  ): Promise<{ count: number, places: TaskPlace[], looked: TaskPlace | undefined }> {
    const letters = (Object.keys(taskLetters) as Letter[]).filter(letter => states.includes(taskLetters[letter]))
    const texts = [
      this.#retention, letters.join(''), context, since === undefined ? '' : String(since), behind ?? '', String(limit),
      String(most)
    ]
    const tag = inboxTag(tenant, inbox)
    return await this.#lanes.call({
      script: this.#scripts['task-list'],
      tag,
      keys: [this.#keyNames.tasks(tag, tenant, inbox, agent)],
      texts,
      decode: reply => {
        const [, count, looked, ...places] = tagged(reply)
        return {
          count: count as number, places: places.map(String), looked: String(looked) === '' ? undefined : String(looked)
        }
      }
    })
  }
}

/** The id of the task at a place. */
export function taskAt (place: TaskPlace): string {
  return place.split(' ')[2]!
}

type SealOf = (id: string, first?: string) => Seal

/** @param parts what was read of it: only where nothing was, or in a list, a locked text does no harm */
function readTask (reply: unknown, sealOf: SealOf, { texts, isOneOfMany = false }: TaskParts): TaskSeen | null {
  const [
    outcome, now, id, record, extra, decision, stands, number, payload, result, fault, cancelReason, progress, question,
    details, answer, ended, ...changes
  ] = tagged(reply)
  if (outcome === 'larger') throw new TooLarge()
  if (outcome === 'not_found') return null
  const [letter, since] = String(stands).split(' ') as [Letter, string]
  const seal = sealOf(String(id))
  const opened = (member: SealedMember, text: unknown) => seal.tryOpen(member, (text ?? null) as Buffer | null)
  const seen = readSeen(now, record, extra, decision, seal)
  const ofAttempt = (id: string) => sealOf(id, seal.first)
  const task: TaskSeen = {
    ...seen,
    id: String(id),
    stands: { state: taskLetters[letter], since: Number(since) },
    number: number as number,
    payload: opened('payload', payload),
    result: opened('result', result),
    fault: textOf(opened('fault', fault)),
    cancelReason: textOf(opened('cancel', cancelReason)),
    progress: parseProgress(textOf(progress), seal),
    texts: question == null || details == null
      ? null
      : seal.tried(() => questionIn(question as Buffer, details as Buffer, (answer ?? null) as Buffer | null, seal)),
    ended: ended == null ? null : seal.tried(() => readChange(ended, ofAttempt)),
    changes: changes.map(change => readChange(change, ofAttempt)),
    isLocked: seal.isLocked
  }
  if (texts !== 'none' && !isOneOfMany) seal.refuseIfLocked()
  return task
}

/** What an agent or a person says with a change (TASK_SAID of lua/lib/task-notes.lua). */
const saidOf: Record<string, SealedMember> = {
  progress: 'progress',
  asked: 'question',
  failed: 'fault',
  declined: 'fault',
  rejected: 'note',
  cancel_requested: 'cancel'
}

/** @param text as lua/lib/tasks.lua writes it */
export function readChange (text: unknown, sealOf: (id: string) => Seal): TaskChange {
  const [number, letter, since, what, handoff, at, ...said] = String(text).split(' ') as
    [string, Letter, string, string, string, string, ...string[]]
  const words = said.join(' ')
  const member = saidOf[what]
  return {
    number: Number(number),
    state: taskLetters[letter],
    since: Number(since),
    what,
    handoff,
    at: Number(at),
    said: words === '-' ? null : member === undefined ? words : sealOf(handoff).openText(member, words)
  }
}
