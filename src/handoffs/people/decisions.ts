import { iso } from '../../core/iso.ts'
import { labelsMember } from '../../core/labels.ts'
import { isAddressed } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import type { DecisionsQuery } from '../../core/schemas/decisions.ts'
import type { Decisions } from '../../store/decisions.ts'
import type { DecisionEntry } from '../../store/decision-entry.ts'
import type { Lists } from '../../store/lists.ts'
import type { Reads } from '../../store/reads.ts'
import { digestText } from '../lifecycle/answers.ts'
import { excerpt } from '../lists/excerpt.ts'
import { readCursor, readTimes, writeCursor } from '../lists/lists.ts'
import type { Requester } from '../../store/requester.ts'

/** How much of a task or a question is shown, in characters. */
const shown = 200
const decisionsName = 'decisions'
/** How many answers, for each decision, may be between the last decisions. */
const answersBetween = 3

/** What a person decided last, with the beginning of the task; null if it was forgotten. */
export interface DecidedLately extends Pick<DecisionEntry, 'state' | 'by' | 'passedBy' | 'extra' | 'isLocked'> {
  id: string
  at: number
  task: { text: string, truncated: boolean } | null
}

/** A page, and the cursor of the next one. */
export interface DecisionPage { items: DecisionEntry[], next: string | null }

/** Lists what people of a tenant decided, and answered. */
export class DecisionService {
  readonly #decisions: Decisions
  readonly #lists: Lists
  readonly #reads: Reads
  readonly #columns: readonly string[]

  /**
   * @param namesPeople whether people sign in by an issuer, so that files have columns for whom
   * @param config whether decisions are signed, and texts encrypted: files have a column for each of both
   */
  constructor (
    decisions: Decisions, lists: Lists, reads: Reads, namesPeople: boolean,
    { signing, payloadKeys }: { signing: { current?: unknown }, payloadKeys: readonly unknown[] }
  ) {
    this.#decisions = decisions
    this.#lists = lists
    this.#reads = reads
    this.#columns = [
      ...columnsWith(namesPeople ? ['decided_by_subject', 'decided_by_name'] : []),
      ...signing.current !== undefined ? ['signature'] : [],
      ...payloadKeys.length > 0 ? [lockedColumn] : []
    ]
  }

  /** A person of this tenant has decided, or answered. */
  made ({ tenant }: Caller): void {
    this.#decisions.made(tenant)
  }

  /** A page, the latest first. A key that is held to inboxes sees what concerns those. */
  async page (
    caller: Caller, { by, inbox, state, cursor, limit = 20, ...times }: DecisionsQuery, requester: Requester
  ): Promise<DecisionPage> {
    const { tenant } = caller
    const wanted = {
      tenant, caughtBy: by, inbox, ...state !== undefined && { statuses: [state] }, ...readTimes(times, 'querystring')
    }
    const from = cursor === undefined ? null : readCursor(cursor, decisionsName)
    let reader = caller
    const read = (now = caller) => {
      reader = now
      return this.#lists.decisions(wanted, from, limit)
    }
    const tags = this.#lists.tagsOf({ ...wanted, state: 'decisions' })
    const { items, next } = await this.#reads.page(tenant, tags, read, requester)
    return {
      items: items.filter(entry => isAddressed(reader, entry)),
      next: next === null ? null : writeCursor(next, decisionsName)
    }
  }

  /** What was decided last, the latest first. Of many answers that are later still, it finds fewer. */
  async latest (tenant: string, limit: number): Promise<DecidedLately[]> {
    // Open pages ask for this at each change: a search by state would take eight times the calls.
    const read = () => this.#lists.decisions({ tenant }, null, limit * answersBetween)
    const { items } = await this.#reads.page(tenant, undefined, read)
    return items.filter(({ state }) => state !== 'answered').slice(0, limit).map(({ id, score, texts, ...entry }) =>
      ({ ...entry, id: handoffOfEntry(id), at: score, task: texts?.text == null ? null : excerpt(texts.text, shown) }))
  }

  /** A page as a file for spreadsheets (RFC 4180). */
  file (page: DecisionPage): string {
    const rows = page.items.map(entry => {
      const item = JSON.parse(itemText(entry)) as Record<string, string | boolean | null>
      return { ...item, labels: (entry.extra.labels ?? []).join() } as Record<string, string | boolean | null>
    })
    // Also of a replica without keys: an empty task would look as if it had been forgotten.
    const isMore = !this.#columns.includes(lockedColumn) && page.items.some(({ isLocked }) => isLocked)
    const columns = isMore ? [...this.#columns, lockedColumn] : this.#columns
    return [columns, ...rows.map(row => columns.map(name => cell(String(row[name] ?? ''))))]
      .map(cells => `${cells.join(',')}\r\n`).join('')
  }
}

/** An entry's id is its handoff's, a slash, and the moment. */
export function handoffOfEntry (id: string): string {
  return id.slice(0, id.indexOf('/'))
}

/** The page as JSON. */
export function decisionsText ({ items, next }: DecisionPage): string {
  return `{"items":[${items.map(itemText).join(',')}],"next_cursor":${JSON.stringify(next)}}`
}

function itemText (entry: DecisionEntry): string {
  const { id, score, state, by, person, passedBy, askId, digest, extra, texts, signature, isLocked } = entry
  const text = texts?.text == null ? 'null' : excerpt(texts.text, shown).text
  return `{"handoff_id":"${handoffOfEntry(id)}","state":"${state}","decided_at":"${iso(score)}","decided_by":"${by}"${person},` +
    `"note":${texts?.note ?? 'null'},"digest":${digest === null ? 'null' : `"${digestText(digest)}"`},` +
    `"to":${JSON.stringify(extra.to ?? null)}${labelsMember(extra.labels)},"passed_by":"${passedBy}",` +
    (askId === null ? `"task":${text}` : `"ask_id":"${askId}","question":${text}`) +
    `${signature === null ? '' : `,"signature":"${signature}"`}${isLocked ? ',"locked":true' : ''}}`
}

const lockedColumn = 'locked'

/** @param who what is said of who decided, besides the name */
function columnsWith (who: readonly string[]): string[] {
  return [
    'handoff_id', 'state', 'decided_at', 'decided_by', ...who, 'note', 'digest', 'to', 'labels', 'passed_by', 'task',
    'ask_id', 'question'
  ]
}

/** A spreadsheet takes what begins so for a formula. */
const isFormula = /^[=+\-@\t\r]/

function cell (text: string): string {
  const safe = isFormula.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
