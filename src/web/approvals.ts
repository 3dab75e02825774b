import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import { Problem, errorTable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { cutMembers } from '../core/json.ts'
import type { Caller } from '../core/model.ts'
import { maxNoteLength, rejectBody } from '../core/schemas/approvals.ts'
import { inspectionText } from '../handoffs/approvals.ts'
import type { ApprovalService, ToRead } from '../handoffs/approvals.ts'
import { logDecision } from '../http/observe.ts'
import type { DecisionLog } from '../http/observe.ts'
import { waitOptionsFor } from '../http/operations.ts'
import type { SeenByPerson, ApprovalVerdict } from '../store/approvals.ts'
import { redirect, show } from './session.ts'
import { beginningOf, visible } from './text.ts'
import { handoffPage } from './views/handoff.ts'
import { notice } from './views/layout.ts'
import { fingerprint, listFragment, listPage } from './views/list.ts'

export const schema = { hide: true }
/** Handoffs per page. */
const listed = 50
/** How long a poll for changes stays open, in milliseconds: less than proxies commonly allow. */
const staysOpen = 25_000

interface ListQuery { Querystring: { cursor?: unknown, decided?: unknown, seen?: unknown } }

export function listRoutes (app: FastifyInstance, approvals: ApprovalService): void {
  app.get<ListQuery>('/', { schema }, async (request, reply) => {
    const { cursor, decided } = request.query
    const from = typeof cursor === 'string' ? cursor : undefined
    const flash = typeof decided === 'string' ? await flashOf(approvals, request.caller, decided) : ''
    const part = await approvals.list(request.caller.tenant, from, listed)
    return show(reply, 200, listPage({ caller: request.caller, part, flash, isFirst: from === undefined }))
  })

  app.get<ListQuery>('/list', { schema }, async (request, reply) => {
    const { seen } = request.query
    const part = await approvals.watch(
      request.caller, listed, waitOptionsFor(staysOpen, request), part => fingerprint(part) !== seen
    )
    return show(reply, 200, listFragment(part, fingerprint(part) !== seen))
  })
}

/** Confirms what this person has just decided. It reads the handoff again: the URL could claim anything. */
async function flashOf (approvals: ApprovalService, caller: Caller, id: string): Promise<string> {
  const one = await approvals.inspect(caller, id).catch(() => undefined)
  if (one === undefined || one.decision?.by !== caller.agent) return ''
  const verdict = one.record.approval === 'rejected' ? 'rejected' : 'approved'
  const members = one.payload === null
    ? undefined
    : cutMembers(Buffer.concat([Buffer.from('{'), one.payload, Buffer.from('}')]))
  const task = members?.values.task as string | undefined
  return notice('good', html`<p>You ${verdict} !${task === undefined
    ? 'it'
    : html`<q dir="auto">!${visible(beginningOf(task, 80))}${task.length > 80 ? '…' : ''}</q>`}</p>`)
}

interface OneHandoff { Params: { id: string } }

/** The page of one handoff, its approval_url. Opening it never decides anything. */
export function handoffRoutes (app: FastifyInstance, approvals: ApprovalService): void {
  app.get<OneHandoff>('/:id', { schema }, async (request, reply) => {
    return show(reply, 200, handoffPage(request.caller, await approvals.read(request.caller, request.params.id)))
  })

  app.get<OneHandoff>('/:id/whole', { schema }, async (request, reply) => {
    const one = await approvals.inspect(request.caller, request.params.id)
    return reply
      .header('content-type', 'text/plain; charset=utf-8')
      .header('content-disposition', `attachment; filename="handoff-${one.id}.txt"`)
      .send(inspectionText(one))
  })
}

/** Well above the longest note that is accepted, so that the page can show a note that is too long again. */
const form = { schema: { hide: true }, bodyLimit: 512 * 1024 }
const noteCharacters = new RegExp(rejectBody.properties.note.pattern as string)

interface Decide { Params: { id: string }, Body: Record<string, unknown> | undefined }

/** @param refused gets the code of a refused decision that the handoff's page explains, without an error page */
export function decisionRoutes (
  app: FastifyInstance, approvals: ApprovalService, log: DecisionLog, refused: (code: ErrorCode) => void
): void {
  const decideAs = (verdict: ApprovalVerdict) => (
    request: FastifyRequest<Decide>, reply: FastifyReply
  ) => decide({ approvals, log, refused }, verdict, request, reply)
  app.post<Decide>('/:id/approve', form, decideAs('approved'))
  app.post<Decide>('/:id/reject', { ...form, config: { moves: 'rejected' } }, decideAs('rejected'))
}

/**
 * After a decision comes the list, with the focus on the next handoff. Not that handoff's page: a second press of the
 * same key would then decide what wasn't read.
 */
async function decide (
  { approvals, log, refused }: {
    approvals: ApprovalService
    log: DecisionLog
    refused: (code: ErrorCode) => void
  },
  verdict: ApprovalVerdict, request: FastifyRequest<Decide>, reply: FastifyReply
): Promise<FastifyReply> {
  const { caller, params: { id } } = request
  const note = noteOf(request.body)
  const problem = faultOf(note, verdict)
  const seen = seenOf(request.body)
  // The handoff's page itself says why: a person has decided, it has expired, or the id is another handoff's.
  const refuse = (code: ErrorCode, one: ToRead) => {
    refused(code)
    return show(
      reply, errorTable[code].status,
      handoffPage(caller, one, code === 'content_changed' ? { note, isAnother: true } : undefined)
    )
  }
  if (problem !== undefined) {
    const one = await approvals.read(caller, id)
    // If the content has changed, refuse as well: this page puts the focus on the note, below content that nobody has
    // read.
    if (one.record.createdAt !== seen.createdAt || (seen.digest !== undefined && one.digest !== seen.digest)) {
      return refuse('content_changed', one)
    }
    return show(reply, 400, handoffPage(caller, one, { note, problem }))
  }
  try {
    await approvals.decide(caller, verdict, id, Buffer.from(JSON.stringify(note === '' ? null : note)), seen)
  } catch (error) {
    if (!(error instanceof Problem) || !standing.has(error.code)) throw error
    return refuse(error.code, await approvals.read(caller, id))
  }
  logDecision(log, request as FastifyRequest, id, verdict)
  return redirect(reply, `/approvals?decided=${id}`)
}

const standing = new Set<string>(['already_decided', 'cancelled', 'expired', 'self_approval', 'content_changed'])

/** Which content the page showed: when it was passed, and its digest. Without a time it is unknown what was read. */
function seenOf (form: Record<string, unknown> | undefined): SeenByPerson {
  const { created_at: at, digest } = form ?? {}
  return { createdAt: typeof at === 'string' ? Date.parse(at) : NaN, ...typeof digest === 'string' && { digest } }
}

/** The note as typed: forms send each line break as CRLF. */
function noteOf (form: Record<string, unknown> | undefined): string {
  const note = form?.note
  return typeof note === 'string' ? note.replaceAll('\r\n', '\n').trim() : ''
}

/** Why a note is refused, in plain words. */
function faultOf (note: string, verdict: ApprovalVerdict): string | undefined {
  if (note === '' && verdict === 'rejected') return 'To reject, say why in the note. Nothing was decided yet.'
  const length = [...note].length
  if (length > maxNoteLength) {
    return `The note has ${length} characters; at most ${maxNoteLength} are allowed. Nothing was decided yet.`
  }
  if (!noteCharacters.test(note)) {
    return 'The note contains invisible control characters. Type it instead of pasting it. Nothing was decided yet.'
  }
  return undefined
}
