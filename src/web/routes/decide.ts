import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, errorTable } from '../../errors.ts'
import type { ErrorCode } from '../../errors.ts'
import type { ApprovalService, ToRead } from '../../handoff/approvals.ts'
import { logDecision } from '../../http/logs.ts'
import type { DecisionLog } from '../../http/logs.ts'
import { longestNote, rejectBody } from '../../schemas/approvals.ts'
import type { SeenByPerson, Verdict } from '../../store/approvals.ts'
import { show } from '../guard.ts'
import { handoffPage } from '../views/handoff.ts'

const schema = { hide: true }
const noteCharacters = new RegExp(rejectBody.properties.note.pattern as string)

interface Decide { Params: { id: string }, Body: Record<string, unknown> | undefined }

/** @param refused told why a decision wasn't taken, where the handoff's page says it and no error does */
export function decisionRoutes (app: FastifyInstance, base: string, approvals: ApprovalService, log: DecisionLog, refused: (code: ErrorCode) => void): void {
  const decideAs = (verdict: Verdict) => (request: FastifyRequest<Decide>, reply: FastifyReply) => decide({ base, approvals, log, refused }, verdict, request, reply)
  app.post<Decide>('/:id/approve', { schema }, decideAs('approved'))
  app.post<Decide>('/:id/reject', { schema, config: { moves: 'rejected' } }, decideAs('rejected'))
}

/**
 * After a decision comes the list, with the keyboard on what waits next: one key away, and no sooner, since a second press of
 * the same key would decide what nobody has read.
 */
async function decide (
  { base, approvals, log, refused }: { base: string, approvals: ApprovalService, log: DecisionLog, refused: (code: ErrorCode) => void },
  verdict: Verdict, request: FastifyRequest<Decide>, reply: FastifyReply
): Promise<FastifyReply> {
  const { caller, params: { id } } = request
  const note = noteOf(request.body)
  const problem = faultOf(note, verdict)
  const seen = seenOf(request.body)
  // The handoff says for itself what stands: who decided, that its time is over, or that it is another one.
  const refuse = (code: ErrorCode, one: ToRead) => {
    refused(code)
    return show(reply, errorTable[code].status, handoffPage(base, caller, one, code === 'content_changed' ? { note, isAnother: true } : undefined))
  }
  if (problem !== undefined) {
    const one = await approvals.read(caller, id)
    // Nor is another one given to decide on here, where the keyboard is beyond what there is to read.
    if (one.record.createdAt !== seen.createdAt || (seen.digest !== undefined && one.digest !== seen.digest)) return refuse('content_changed', one)
    return show(reply, 400, handoffPage(base, caller, one, { note, problem }))
  }
  try {
    await approvals.decide(caller, verdict, id, Buffer.from(JSON.stringify(note === '' ? null : note)), seen)
  } catch (error) {
    if (!(error instanceof Problem) || !standing.has(error.code)) throw error
    return refuse(error.code, await approvals.read(caller, id))
  }
  logDecision(log, request as FastifyRequest, id, verdict)
  return reply.redirect(`${base}/approvals?decided=${id}`, 303)
}

const standing = new Set<string>(['already_decided', 'cancelled', 'expired', 'self_approval', 'content_changed'])

/** When what the page showed was passed, and its digest. A form that doesn't say when is of an older version's page: nobody knows what was read there. */
function seenOf (form: Record<string, unknown> | undefined): SeenByPerson {
  const { created_at: at, digest } = form ?? {}
  return { createdAt: typeof at === 'string' ? Date.parse(at) : NaN, ...typeof digest === 'string' && { digest } }
}

/** As it was typed: forms send each line break as two characters. */
function noteOf (form: Record<string, unknown> | undefined): string {
  const note = form?.note
  return typeof note === 'string' ? note.replaceAll('\r\n', '\n').trim() : ''
}

/** Why a note can't be taken, in plain words. */
function faultOf (note: string, verdict: Verdict): string | undefined {
  if (note === '' && verdict === 'rejected') return 'To reject, say why in the note. Nothing was decided yet.'
  const length = [...note].length
  if (length > longestNote) return `The note has ${length} characters; ${longestNote} is the most. Nothing was decided yet.`
  if (!noteCharacters.test(note)) return 'The note has control characters, which can’t be seen. Type it instead of pasting it. Nothing was decided yet.'
  return undefined
}
