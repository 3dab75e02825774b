import { loadConfig } from '../config.ts'
import type { Config } from '../config.ts'
import { PayloadBroken, PayloadLocked } from '../core/errors.ts'
import { isId, tagOf } from '../core/ids.ts'
import { iso } from '../core/iso.ts'
import { labelsMember } from '../core/labels.ts'
import { askAt, deadlineOf, expiryOf, statusAt } from '../core/model.ts'
import {
  agreedMembers, approvalText, digestText, endOf, moreMembers, otherTerms, spliceAnswer, agentMembers, willBeTriedAgain
} from '../handoffs/lifecycle/answers.ts'
import type { WaitsFor } from '../core/schemas/handoffs.ts'
import { namedIn } from '../handoffs/lifecycle/after.ts'
import { callbackMember, withoutQuery } from '../handoffs/lifecycle/callback.ts'
import { whyCallbackFailed } from '../webhooks/reasons.ts'
import { Explanations } from '../handoffs/lifecycle/explain.ts'
import { InboxSettingsService } from '../handoffs/inbox/settings.ts'
import { WorkerService } from '../handoffs/inbox/workers.ts'
import type { InspectReply } from '../store/approvals.ts'
import type { AgentTexts } from '../store/replies.ts'
import { Reads } from '../store/reads.ts'
import type { Store } from '../store/store.ts'
import { waitsInWords } from '../clients/typescript/command/common/waits.ts'
import { Failure, harmless, print, span, unbroken } from '../clients/typescript/command/output.ts'
import { due, when } from './output.ts'
import { whereabouts, withStore } from './redis.ts'
import type { Whereabouts } from './redis.ts'

/** A report on a handoff, for programs and for people. */
interface Report {
  found: Found
  place: Whereabouts & { keptUntil: number | null }
  /** What it waits for; null if it isn't pending. */
  waits: readonly WaitsFor[] | null
  /** Whether to include payload and result. */
  withPayload: boolean
  /** One JSON object, with payload and result unchanged. */
  json: Buffer
}

function reportOf ({ found, place, waits, withPayload }: Omit<Report, 'json'>): Report {
  const head = `${JSON.stringify({ ...members(found, place), ...waits !== null && { waits_for: waits } }).slice(
    0, -1
  )},"approval":${approvalText(found.record.approval, found.decision)}${labelsMember(found.record.extra.labels)}${unbroken(
    agentMembers(found.texts, found.record)
  )}`
  const schema = found.schema === null ? [] : [Buffer.from(',"result_schema":'), found.schema]
  const content = withPayload
    ? Buffer.concat([
      Buffer.from(`${head},"payload":`), braced(found.payload), ...schema, Buffer.from(',"result":'),
      found.result ?? none, Buffer.from('}')
    ])
    : Buffer.from(`${head}}`)
  return { found, place, waits, withPayload, json: content }
}

const none = Buffer.from('null')

/** Redis keeps a JSON object without its braces. */
function braced (payload: Buffer | null): Buffer {
  return payload === null ? none : spliceAnswer('{', payload, '}')
}

function members (found: Found, place: Report['place']): object {
  const { id, tenant, now, record, payload, result, digest, schema, callback, isLocked } = found
  const { caught, completedAt } = record
  const deadline = deadlineOf(record)
  return {
    handoff_id: id,
    tenant,
    status: statusAt(record, now),
    require_human: record.approval !== 'none',
    created_at: iso(record.createdAt),
    passed_by: record.passedBy,
    expires_at: iso(record.expiresAt),
    caught_at: caught && iso(caught.at),
    caught_by: caught && caught.by,
    work_expires_at: caught && iso(caught.deadline),
    completed_at: completedAt === null ? null : iso(completedAt),
    deadline_in_ms: Number.isFinite(deadline) ? deadline - now : null,
    now: iso(now),
    ...agreedMembers(record),
    ...moreMembers(record, now),
    ...afterMembers(found),
    ...callback !== null && { callback: callbackMember(callback) },
    ...digest !== '' && { digest: digestText(digest) },
    ...schema !== null && { result_schema_bytes: schema.length },
    partition: place.partition,
    slot: place.slot,
    key: place.key,
    master: place.master,
    kept_until: place.keptUntil === null ? null : iso(place.keptUntil),
    ...isLocked && { locked: true },
    payload_bytes: payload && payload.length,
    result_bytes: result && result.length,
  }
}

/** The report for people. */
function describe ({ found, place, waits, withPayload }: Report): string {
  const { id, tenant, now, record, payload, result, schema, isLocked } = found
  const { caught, completedAt } = record
  const status = statusAt(record, now)
  const lines: ReportLine[] = [
    ['handoff', id],
    ['status', status],
    ['tenant', tenant],
    ['passed', `${when(record.createdAt, now)} by ${record.passedBy}`],
    ['expires', caught === null
      ? due(record.expiresAt, status === 'pending' || status === 'expired', now)
      : `${iso(record.expiresAt)}, without a catch`],
  ]
  if (waits !== null) lines.push(['waits for', waitsInWords(waits)])
  lines.push(...agreedLines(found))
  if (record.approval !== 'none') lines.push(['approval', approvalWords(found)])
  if (caught !== null) {
    const { worker } = record.extra
    lines.push(['caught', `${when(caught.at, now)} by ${caught.by}${worker === undefined ? '' : `, ${worker}`}`])
    lines.push(
      ['work due', due(caught.deadline, status === 'caught' || status === 'expired', now)], ...workLines(found)
    )
  }
  if (completedAt !== null) lines.push(['done', when(completedAt, now)])
  lines.push(...endLines(found))
  lines.push(
    ['partition', `${place.partition}, slot ${place.slot}`],
    ['key', place.key],
    ['master', place.master ?? 'unknown'],
    ['kept until', place.keptUntil === null ? 'unknown' : when(place.keptUntil, now)],
    ['payload', payload === null ? isLocked ? 'locked' : 'deleted' : `${payload.length} bytes`],
    ['result', result === null ? 'none' : `${result.length} bytes`]
  )
  const texts = withPayload
    ? [payload && `{${payload}}`, schema && `${schema}`, result && `${result}`].filter(text =>
        text !== null).map(text => `\n\n${harmless(text)}`)
    : []
  return lines.map(([name, value]) => `${name.padEnd(10)} ${value}`).join('\n') + texts.join('')
}

/** A handoff that it comes after. `status`: how it has ended, once it has. */
function afterMembers ({ record: { extra }, after }: Found): object {
  if (extra.after === undefined) return {}
  const all = namedIn(after).map(({ named, last, status }) =>
    ({ handoff_id: named, ...last !== undefined && last !== named && { last }, ...status !== undefined && { status } }))
  return { after: all, after_need: extra.after.need }
}

function approvalWords ({ record, decision, now }: Found): string {
  if (decision === null) return record.approval
  const note = decision.note === 'null' ? '' : `: ${harmless(decision.note)}`
  return `${record.approval} ${when(decision.at, now)} by ${decision.by}${note}`
}

/** Lines of the report on a handoff's options. Agents' texts are shown as JSON. */

/** A handoff as Redis stores it. */
type Found = Extract<InspectReply, { outcome: 'found' }> & {
  id: string
  tenant: string
  result: Buffer | null
  texts: AgentTexts | null
  /** The handoffs that it comes after, as Redis keeps them. */
  after: string | null
  /** Whether a payload key is missing here; then texts are null. */
  isLocked: boolean
  lockedBy: string | null
}

type ReportLine = [name: string, value: string]

/** The terms that pass set. */
function agreedLines ({ now, record, digest, schema, after, callback }: Found): ReportLine[] {
  const {
    to, priority, group, labels, availableAt, workWithin, heartbeatWithin, maxAttempts, attempt, reissueOf, parent,
    root, hops
  } = record.extra
  const lines: ReportLine[] = []
  const windows = [
    workWithin !== undefined && `work ${span(workWithin)}`,
    heartbeatWithin !== undefined && `heartbeat ${span(heartbeatWithin)}`
  ].filter(Boolean)
  if (to !== undefined) lines.push(['to', `${to}, priority ${priority ?? 0}`])
  if (group !== undefined) lines.push(['group', group])
  if (labels !== undefined) lines.push(['labels', labels.join(', ')])
  if (availableAt !== undefined) lines.push(['available', when(availableAt, now)])
  if (windows.length > 0) lines.push(['windows', windows.join(', ')])
  if (attempt !== undefined || maxAttempts !== undefined) {
    lines.push([
      'attempt', `${attempt ?? 1} of ${maxAttempts ?? 1}${reissueOf === undefined ? '' : `, after ${reissueOf}`}`
    ])
  }
  const waitsFor = record.extra.after
  if (waitsFor !== undefined) {
    const all = namedIn(after)
    lines.push(['after', `${waitsFor.open} of ${all.length} open, needs ${waitsFor.need}`])
    for (const { named, last = named, status = 'open' } of all) {
      lines.push(['', `${named} ${status}${last === named ? '' : `, as ${last}`}`])
    }
  }
  if (parent !== undefined) lines.push(['parent', `${parent}, root ${root}, hops ${hops}`])
  for (const [name, value] of otherTerms(record)) lines.push([name, harmless(value)])
  if (callback !== null) {
    const { url, pending, delivered, failed, last } = callback
    lines.push(['callback', `${withoutQuery(url)}: ${pending} pending, ${delivered} delivered, ${failed} failed`])
    if (last !== null) {
      const why = whyCallbackFailed(last.status, last.error)
      lines.push(['', `last tried ${when(last.at, now)}${why === null ? '' : `: ${harmless(why)}`}`])
    }
  }
  if (schema !== null) lines.push(['schema', `${schema.length} bytes`])
  if (digest !== '') lines.push(['digest', digestText(digest)])
  return lines
}

/** The state of the work. */
function workLines ({ now, record, texts }: Found): ReportLine[] {
  const { heartbeatDeadline, cancelRequestedAt, ask } = record.extra
  const status = statusAt(record, now)
  const lines: ReportLine[] = []
  if (heartbeatDeadline !== undefined) {
    lines.push(['heartbeat', `due ${due(heartbeatDeadline, status === 'caught' || status === 'expired', now)}`])
  }
  if (ask !== undefined) {
    const state = askAt(ask, record, now)
    const end = state === 'answered' ? ` ${when(ask.endedAt!, now)} by ${ask.answeredBy}` : ''
    const until = state === 'open' ? `; until its answer, or ${when(ask.expiresAt, now)}, the deadlines are paused` : ''
    const whom = ask.of === 'person' ? 'a person' : 'its passer'
    lines.push(['question', `${state}${end}, asked of ${whom} ${when(ask.askedAt, now)}${until}`])
  }
  if (texts?.progress != null) lines.push(['progress', `${when(texts.progress.at, now)}${afterColon(texts.progress.text)}`])
  // If it is cancelled by now, the line `ended` has the reason.
  if (cancelRequestedAt !== undefined) {
    lines.push([
      'cancel', `requested ${when(cancelRequestedAt, now)}${status === 'cancelled' ? '' : afterColon(texts?.cancelReason)}`
    ])
  }
  return lines
}

/** How the handoff ended without being done, by whom and why, and its successor. */
function endLines ({ now, record, texts }: Found): ReportLine[] {
  const status = statusAt(record, now)
  const end = endOf(record, now)
  const { reissuedAs } = record.extra
  const lines: ReportLine[] = []
  if (end !== null) {
    const why = status === 'expired'
      ? `: ${expiryOf(record).because}`
      : afterColon(status === 'cancelled' ? texts?.cancelReason : texts?.fault)
    lines.push(['ended', `${when(end.at, now)}${end.by === null ? '' : ` by ${end.by}`}${why}`])
  }
  if (reissuedAs !== undefined) lines.push(['reissued', `as ${reissuedAs}`])
  else if (willBeTriedAgain(record, now)) lines.push(['reissued', 'soon, by the sweep'])
  return lines
}

/** @param text JSON text, if there is one */
function afterColon (text: string | null | undefined): string {
  return text == null ? '' : `: ${harmless(unbroken(text))}`
}

interface LookOptions {
  tenant?: string | undefined
  json?: boolean
  /** Whether to show payload and result. */
  payload?: boolean
}

/**
 * Shows a handoff, and where it is stored. Changes nothing and needs no key: the one with Redis's password is the
 * operator.
 */
export async function look (id: string, { tenant, json = false, payload = false }: LookOptions): Promise<void> {
  if (!isId(id)) {
    throw new Failure('that is no handoff’s id: an id has 25 characters of A-Z a-z 0-9 - _, as pass answered it')
  }
  const config = loadConfig()
  // Doesn't wait for replicas: an operator who looks for a fault must see the handoff while replicas are away.
  const report = await withStore(config, 0, async store => {
    const found = await find(store, config, id, tenant)
    const where = whereabouts(store.masters, config.keyPrefix, found.tenant, id)
    // The TTL isn't in the record, and this Redis user may not be allowed to read it.
    const keptUntil = await store.masters.of(tagOf(id))?.calls.pexpiretime(where.key).then(Number, () => null) ?? null
    const waits = await waitsOf(store, found)
    return reportOf({ found, place: { ...where, keptUntil }, waits, withPayload: payload })
  })
  print(json ? report.json : describe(report))
}

function waitsOf (store: Store, { id, tenant, ...found }: Found): Promise<WaitsFor[] | null> {
  const reads = new Reads()
  const workers = new WorkerService(store.listeners, reads, () => {})
  const inboxes = new InboxSettingsService(store.inboxes, reads, workers)
  const explanations = new Explanations(store.listeners, inboxes, workers, store.payloadKeyNotes)
  return explanations.of({ tenant, id, tag: tagOf(id) }, found)
}

/**
 * An id has its partition but not its tenant, and the Redis key contains the tenant. So this looks in every known
 * tenant, all in the one partition and at once. A scan would keep a Redis with millions of keys busy for seconds.
 * @throws {Failure} no such handoff
 */
async function find (store: Store, config: Config, id: string, tenant: string | undefined): Promise<Found> {
  const near = tenant === undefined ? ['default', ...config.apiKeys.map(({ caller }) => caller.tenant)] : [tenant]
  const found = await findIn(near, store, id) ??
    (tenant === undefined ? await findIn(await tenantsOfKeys(store), store, id) : undefined)
  if (found === undefined) {
    throw new Failure('no such handoff: it never existed, is gone, or belongs to a tenant without keys (--tenant)')
  }
  return found
}

async function findIn (tenants: readonly string[], store: Store, id: string): Promise<Found | undefined> {
  const looks = await Promise.all([...new Set(tenants)].map(async tenant => {
    const place = { tenant, id, tag: tagOf(id) }
    const [inspection, status] = await Promise.all([
      store.approvals.inspect(place).catch(nullIfLocked), store.handoffs.status(place)
    ])
    if (inspection?.outcome === 'not_found' || status.outcome === 'not_found') return undefined
    const { now, record, decision, result, texts, after, callback, lockedBy } = status
    // The status has all that can be read without the payload key.
    const seen = inspection ??
      { outcome: 'found' as const, now, record, decision, payload: null, digest: '', field: '', schema: null }
    const isLocked = inspection === null || lockedBy !== null
    return { id, tenant, ...seen, result, texts, after, callback, isLocked, lockedBy }
  }))
  return looks.find(look => look !== undefined)
}

function nullIfLocked (error: unknown): null {
  if (error instanceof PayloadLocked || error instanceof PayloadBroken) return null
  throw error
}

async function tenantsOfKeys (store: Store): Promise<string[]> {
  return (await store.keyRecords.list()).map(({ tenant }) => tenant)
}
