import type { FastifyInstance, FastifyRequest } from 'fastify'
import { inspectionText, listText } from '../../handoffs/approvals.ts'
import type { ApprovalService } from '../../handoffs/approvals.ts'
import {
  approveBody, decisionAnswer, inspectAnswer, listAnswer, listQuery, rejectBody
} from '../../core/schemas/approvals.ts'
import type { ListQuery } from '../../core/schemas/approvals.ts'
import { handoffParams, noQuery } from '../../core/schemas/handoffs.ts'
import { problems } from '../../core/schemas/problem.ts'
import { logDecision } from '../observe.ts'
import type { DecisionLog } from '../observe.ts'
import { jsonType } from '../body.ts'

interface OneHandoff { Params: { id: string } }
interface Decide extends OneHandoff { Body: { digest?: string | null } }

const config = { scope: 'approve' as const }
const tags = ['approvals']
const noNote = Buffer.from('null')

/** The note's JSON text as it came. It is stored and shown, and never parsed here. */
function noteOf (request: FastifyRequest): Buffer {
  return request.members.raw('note') ?? noNote
}

/** The SHA-256 in base64, taken out of RFC 9530's form. */
function digestIn ({ digest }: Decide['Body']): string | undefined {
  return digest == null ? undefined : digest.slice('sha-256=:'.length, -':'.length)
}

/** What people see and decide, as an API; web/ has the page. */
export function approvalRoutes (app: FastifyInstance, service: ApprovalService, log: DecisionLog): void {
  app.get<{ Querystring: ListQuery }>('/api/approvals', {
    config,
    schema: {
      operationId: 'listApprovals',
      summary: 'List the handoffs that wait for approval',
      tags,
      description: 'Oldest first, only this tenant’s. Pages stay stable while handoffs come and go. Go on until ' +
        'next_cursor is null: before that, a page may ' +
        'have fewer items than `limit`, or none. A task is truncated to 1,000 characters (Unicode code points).',
      querystring: listQuery,
      response: { 200: listAnswer, ...problems({ body: false }) },
    },
  }, async (request, reply) => {
    reply.header('content-type', jsonType)
    return listText(await service.list(request.caller.tenant, request.query.cursor, request.query.limit ?? 20))
  })

  app.get<OneHandoff>('/api/approvals/:id', {
    config,
    schema: {
      operationId: 'inspectApproval',
      summary: 'Read a handoff before the decision',
      tags,
      description: 'Shows everything that was passed. Changes nothing.',
      params: handoffParams,
      querystring: noQuery,
      response: { 200: inspectAnswer, ...problems({ body: false }, 'no_approval_required') },
    },
  }, async (request, reply) => {
    reply.header('content-type', jsonType)
    return inspectionText(await service.inspect(request.caller, request.params.id))
  })

  const refusals = problems(
    { body: true }, 'no_approval_required', 'already_decided', 'cancelled', 'expired', 'self_approval',
    'content_changed'
  )
  app.post<Decide>('/api/approve/:id', {
    config,
    schema: {
      operationId: 'approve',
      summary: 'Approve a handoff, so that it can be caught',
      tags,
      description: 'The decision is final. The agent that passed a handoff may not decide on it. The body is optional.',
      params: handoffParams,
      querystring: noQuery,
      body: approveBody,
      response: { 200: decisionAnswer, ...refusals },
    },
  }, async (request, reply) => {
    const answer = await service.decide(
      request.caller, 'approved', request.params.id, noteOf(request), { digest: digestIn(request.body) }
    )
    logDecision(log, request as FastifyRequest, request.params.id, 'approved')
    reply.header('content-type', jsonType)
    return answer
  })

  app.post<Decide>('/api/reject/:id', {
    config: { ...config, moves: 'rejected' },
    schema: {
      operationId: 'reject',
      summary: 'Reject a handoff, so that nobody can catch it',
      tags,
      description: 'The decision is final and needs a note. The agent that passed a handoff may not decide on it.',
      params: handoffParams,
      querystring: noQuery,
      body: rejectBody,
      response: { 200: decisionAnswer, ...refusals },
    },
  }, async (request, reply) => {
    const answer = await service.decide(
      request.caller, 'rejected', request.params.id, noteOf(request), { digest: digestIn(request.body) }
    )
    logDecision(log, request as FastifyRequest, request.params.id, 'rejected')
    reply.header('content-type', jsonType)
    return answer
  })
}
