import { approvalText, digestText, iso } from '../handoff/answers.ts'
import { agreedMembers, moreMembers, toldText } from '../handoff/status-answer.ts'
import { deadlineOf, statusAt } from '../model.ts'
import { spliceAnswer } from '../handoff/payload.ts'
import { agreedLines, endLines, workLines } from './life-lines.ts'
import type { Found, Line } from './life-lines.ts'
import { due, harmless, unbroken, when } from './output.ts'
import type { Whereabouts } from './place.ts'

/** A report on a handoff, for programs and for people. */
export interface Report {
  found: Found
  place: Whereabouts & { keptUntil: number | null }
  /** Whether to include what was passed and the result. */
  withPayload: boolean
  /** One JSON object, with what was passed and the result unchanged. */
  json: Buffer
}

export function reportOf (found: Found, place: Report['place'], withPayload: boolean): Report {
  const head = `${JSON.stringify(members(found, place)).slice(0, -1)},"approval":${approvalText(found.record.approval, found.decision)}${unbroken(toldText(found.told, found.record))}`
  const schema = found.schema === null ? [] : [Buffer.from(',"result_schema":'), found.schema]
  const content = withPayload
    ? Buffer.concat([Buffer.from(`${head},"payload":`), braced(found.payload), ...schema, Buffer.from(',"result":'), found.result ?? none, Buffer.from('}')])
    : Buffer.from(`${head}}`)
  return { found, place, withPayload, json: content }
}

const none = Buffer.from('null')

/** Redis keeps a JSON object without its braces. */
function braced (payload: Buffer | null): Buffer {
  return payload === null ? none : spliceAnswer('{', payload, '}')
}

function members ({ id, tenant, now, record, payload, result, digest, schema }: Found, place: Report['place']): object {
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
    ...digest !== '' && { digest: digestText(digest) },
    ...schema !== null && { result_schema_bytes: schema.length },
    partition: place.partition,
    slot: place.slot,
    key: place.key,
    master: place.master,
    kept_until: place.keptUntil === null ? null : iso(place.keptUntil),
    payload_bytes: payload && payload.length,
    result_bytes: result && result.length,
  }
}

/** The report for people. */
export function describe ({ found, place, withPayload }: Report): string {
  const { id, tenant, now, record, payload, result, schema } = found
  const { caught, completedAt } = record
  const status = statusAt(record, now)
  const lines: Line[] = [
    ['handoff', id],
    ['status', status],
    ['tenant', tenant],
    ['passed', `${when(record.createdAt, now)} by ${record.passedBy}`],
    ['expires', caught === null ? due(record.expiresAt, status === 'pending' || status === 'expired', now) : `${iso(record.expiresAt)}, if nobody had caught it`],
  ]
  lines.push(...agreedLines(found))
  if (record.approval !== 'none') lines.push(['approval', approvalWords(found)])
  if (caught !== null) {
    lines.push(['caught', `${when(caught.at, now)} by ${caught.by}`])
    lines.push(['work due', due(caught.deadline, status === 'caught' || status === 'expired', now)], ...workLines(found))
  }
  if (completedAt !== null) lines.push(['done', when(completedAt, now)])
  lines.push(...endLines(found))
  lines.push(
    ['partition', `${place.partition}, slot ${place.slot}`],
    ['key', place.key],
    ['master', place.master ?? 'unknown'],
    ['kept until', place.keptUntil === null ? 'unknown' : when(place.keptUntil, now)],
    ['payload', payload === null ? 'deleted' : `${payload.length} bytes`],
    ['result', result === null ? 'none' : `${result.length} bytes`]
  )
  const texts = withPayload ? [payload && `{${payload}}`, schema && `${schema}`, result && `${result}`].filter(text => text !== null).map(text => `\n\n${harmless(text)}`) : []
  return lines.map(([name, value]) => `${name.padEnd(11)}${value}`).join('\n') + texts.join('')
}

function approvalWords ({ record, decision, now }: Found): string {
  if (decision === null) return record.approval
  const note = decision.note === 'null' ? '' : `: ${harmless(decision.note)}`
  return `${record.approval} ${when(decision.at, now)} by ${decision.by}${note}`
}
