import { hasScope } from '../../auth/scopes.ts'
import { Problem, invalid } from '../../core/errors.ts'
import type { Fault } from '../../core/errors.ts'
import { isId } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import { cutMembers } from '../../core/json.ts'
import { labelsExpected, labelsMember, wantedLabels } from '../../core/labels.ts'
import { isAddressed, isResting, mayReadTexts, statusAt } from '../../core/model.ts'
import type { Caller, Status } from '../../core/model.ts'
import type { HandoffsQuery } from '../../core/schemas/lists.ts'
import { readTime } from '../../clients/typescript/command/common/time.ts'
import type { ListPosition, ListedHandoff, ListedPage, Lists, TaskRead, Wanted } from '../../store/lists.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import {
  approvalText, blockedMember, checkpointMember, endOf, expiryMember, membersText, progressMember, scheduleMembers,
  termsOn, windowMembers, withoutNote
} from '../lifecycle/answers.ts'
import { excerpt, titleText } from './excerpt.ts'

/** How much is shown of texts, in characters (Unicode code points). */
const shown = { task: 200, message: 1000 }

/** The statuses in the failed list, and in the list of ended handoffs. */
const failures: readonly string[] = ['failed', 'declined', 'expired'] satisfies Status[]
const endings: readonly string[] = [...failures, 'done', 'cancelled', 'rejected'] satisfies string[]

interface ListOptions {
  /** The names of labels that make runs. */
  runLabels: readonly string[]
  /** Whether what has ended is listed. */
  listsEnded: boolean
}

/** Lists a tenant's handoffs. */
export class ListService {
  readonly #lists: Lists
  readonly #reads: Reads
  readonly #options: ListOptions

  constructor (lists: Lists, reads: Reads, options: ListOptions) {
    this.#lists = lists
    this.#reads = reads
    this.#options = options
  }

  /** A page of the list. @returns the answer's JSON */
  async page (caller: Caller, query: HandoffsQuery, requester?: Requester): Promise<string> {
    return (await this.pageAt(caller, query, requester)).text
  }

  /**
   * The same, with its time by Redis's clock.
   * @param statuses which live handoffs are wanted
   */
  async pageAt (
    caller: Caller, query: HandoffsQuery, requester?: Requester, statuses?: readonly Status[]
  ): Promise<{ text: string, now: number }> {
    const { tenant } = caller
    if (query.state === 'ended' && !this.#options.listsEnded) throw new Problem('ended_off')
    const wanted = readWanted(tenant, query, this.#options.runLabels)
    if (statuses !== undefined) wanted.statuses = statuses
    const from = query.cursor === undefined ? null : readCursor(query.cursor, wanted.state)
    // What its key may read can change while it waits for its slot.
    let reader = caller
    const read = (now = caller) => {
      reader = now
      return this.#lists.page(wanted, from, query.limit ?? 20, tasksFor(now))
    }
    const page = await this.#reads.page(tenant, this.#lists.tagsOf(wanted), read, requester)
    const items = page.items.map(item => shownItem(reader, item))
    return { text: pageText({ ...page, items }, wanted.state), now: page.now }
  }
}

/** The part of tasks that this caller may see in lists. */
function tasksFor (caller: Caller): TaskRead {
  return hasScope(caller, 'operate') ? 'beginning' : hasScope(caller, 'read') ? 'title' : 'nothing'
}

/** A key that is held to other inboxes than the handoff's sees how the handoff stands, and no text. */
function shownItem (caller: Caller, item: ListedHandoff): ListedHandoff {
  if (isAddressed(caller, item.record)) return item
  if (mayReadTexts(caller, item.record)) return { ...item, task: null, title: null }
  const texts = { fault: null, cancelReason: null, progress: null }
  return { ...item, task: null, title: null, texts, decision: withoutNote(item.decision), isLocked: false }
}

/** The search of a query. @throws {Problem} a 400 with all its faults */
function readWanted (tenant: string, query: HandoffsQuery, runLabels: readonly string[]): Wanted {
  const { state = 'live', inbox, passed_by: passedBy, caught_by: caughtBy, status, error_code: errorCode } = query
  const labels = wantedLabels(query.labels)
  const statuses = status?.split(',')
  const faults: Fault[] = []
  const check = (isRight: boolean, name: string, message: string) => {
    if (!isRight) faults.push({ pointer: `/${name}`, message: `querystring: ${message}` })
  }
  check(labels !== null, 'labels', labelsExpected)
  for (const name of ['since', 'until', 'status', 'error_code'] as const) {
    check(state !== 'live' || query[name] === undefined, name, 'needs state=failed or state=ended')
  }
  check(state === 'ended' || query.attempts === undefined, 'attempts', 'needs state=ended')
  const possible = state === 'ended' ? endings : failures
  check(statuses?.every(name => possible.includes(name)) !== false, 'status', `must be of ${possible.join(', ')}`)
  if (faults.length > 0) throw invalid(...faults)
  return {
    tenant,
    state,
    inbox,
    group: query.group,
    schedule: query.schedule,
    passedBy,
    caughtBy,
    labels: labels ?? undefined,
    run: runOf(labels, runLabels),
    allAttempts: query.attempts === 'all',
    statuses: statuses as Status[],
    errorCode,
    ...readTimes(query, 'querystring')
  }
}

/** The first of the labels that makes a run. */
export function runOf (
  labels: readonly string[] | null | undefined, runLabels: readonly string[]
): string | undefined {
  return labels?.find(label => runLabels.includes(label.slice(0, label.indexOf(':'))))
}

/** The bounds of the time of an end, of a query or a body. @throws {Problem} a 400 */
export function readTimes (
  given: { since?: string | null, until?: string | null }, place: string
): Pick<Wanted, 'since' | 'until'> {
  const names = ['since', 'until'] as const
  const times = names.map(name => given[name] == null ? undefined : readTime(given[name]) ?? null)
  const faults = names.filter((_, n) => times[n] === null)
    .map(name => ({ pointer: `/${name}`, message: `${place}: must be a time like 2026-11-20T09:00:00.000Z` }))
  if (faults.length > 0) throw invalid(...faults)
  return { since: times[0] ?? undefined, until: times[1] ?? undefined }
}

/** The page's JSON. */
function pageText ({ items, next, now }: ListedPage, state: Wanted['state']): string {
  const cursor = next === null ? null : writeCursor(next, state)
  return `{"items":[${items.map(item => itemText(item, now)).join(',')}],"next_cursor":${JSON.stringify(cursor)}}`
}

/** A handoff as lists have it. No list has payloads, or results. */
function itemText (
  { id, record, decision, texts, task, title, isLocked }: ListedHandoff, now: number
): string {
  const { caught, completedAt, extra } = record
  const status = statusAt(record, now)
  const end = status === 'rejected' && decision !== null ? decision : endOf(record, now)
  const { to, priority = 0, group, parent, max_attempts: maxAttempts, ...others } = termsOn('list', extra)
  const known = JSON.stringify({
    handoff_id: id,
    status,
    require_human: record.approval !== 'none',
    passed_by: record.passedBy,
    created_at: iso(record.createdAt),
    expires_at: iso(record.expiresAt),
    ...to !== undefined && { to, priority, group },
  }).slice(0, -1)
  const terms = {
    parent,
    attempt: extra.attempt,
    max_attempts: maxAttempts,
    ...others,
    ...blockedMember(record, now),
    ...scheduleMembers(record),
  }
  const work = {
    ...caught !== null && { caught_by: caught.by, caught_at: iso(caught.at) },
    ...windowMembers(record, now),
    ...extra.heartbeatAt !== undefined && { heartbeat_at: iso(extra.heartbeatAt) },
    worker: extra.worker,
    ...checkpointMember(extra),
  }
  const ends = {
    ...extra.cancelRequestedAt !== undefined && { cancel_requested_at: iso(extra.cancelRequestedAt) },
    ...isResting(record, now) && { ask: { ask_id: extra.ask!.id, asked_at: iso(extra.ask!.askedAt) } },
    ...completedAt !== null && { completed_at: iso(completedAt) },
    ...end !== null && { ended_at: iso(end.at), ended_by: end.by },
    ...extra.reissuedAs !== undefined && { reissued_as: extra.reissuedAs },
  }
  return known + labelsMember(extra.labels) + membersText(terms) +
    (record.approval === 'none' ? '' : `,"approval":${approvalText(record.approval, decision)}`) + membersText(work) +
    progressMember(texts.progress) + membersText(ends) + faultMember(status, texts.fault) +
    membersText(expiryMember(record, now)) + (title === null ? '' : `,"title":${titleText(title)}`) +
    taskMember(task) + (isLocked ? ',"locked":true}' : '}')
}

/** Its catcher's error, without the error's data, or reason. */
function faultMember (status: Status, fault: string | null): string {
  if (fault === null) return ''
  const text = (json: Buffer) => excerpt(json, shown.message).text
  if (status !== 'failed') return `,"reason":${text(Buffer.from(fault))}`
  const members = cutMembers(Buffer.from(fault))
  const code = members.values.code == null ? '' : `,"code":${members.raw('code')!}`
  return `,"error":{"message":${text(members.raw('message')!)}${code}}`
}

function taskMember (task: Buffer | null): string {
  if (task === null) return ''
  const { text, truncated } = excerpt(task, shown.task)
  return `,"task":${text}${truncated ? ',"task_truncated":true' : ''}`
}

/** @param list its name: a cursor is for one list */
export function writeCursor ({ score, id, includes }: ListPosition, list: string): string {
  return Buffer.from(`${list} ${score} ${id} ${includes ? 'from' : 'after'}`).toString('base64url')
}

const cursorShape = /^([a-z]+) (\d{1,16}(?:\.\d{1,20})?) (\S*) (from|after)$/

/** A cursor is a place in the list, not a permission: a made-up one shows nothing that the list doesn't show. */
export function readCursor (cursor: string, name: string): ListPosition {
  const [, list, score, id, mark] = cursorShape.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (list !== name || !(isId(id!.replace(/\/\d+$/, '')) || id === '' || id === '~')) {
    throw invalid({ pointer: '/cursor', message: 'querystring: must be a next_cursor of this list' })
  }
  return { score: Number(score), id: id!, includes: mark === 'from' }
}
