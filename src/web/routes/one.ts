import type { FastifyInstance } from 'fastify'
import { inspectionText } from '../../handoff/approvals.ts'
import type { ApprovalService } from '../../handoff/approvals.ts'
import { show } from '../guard.ts'
import { handoffPage } from '../views/handoff.ts'

const schema = { hide: true }

interface OneHandoff { Params: { id: string } }

/** The page of one handoff, its approval_url. Opening it never decides anything. */
export function handoffRoutes (app: FastifyInstance, base: string, approvals: ApprovalService): void {
  app.get<OneHandoff>('/:id', { schema }, async (request, reply) => {
    return show(reply, 200, handoffPage(base, request.caller, await approvals.read(request.caller, request.params.id)))
  })

  app.get<OneHandoff>('/:id/whole', { schema }, async (request, reply) => {
    const one = await approvals.inspect(request.caller, request.params.id)
    return reply
      .header('content-type', 'text/plain; charset=utf-8')
      .header('content-disposition', `attachment; filename="handoff-${one.id}.txt"`)
      .send(inspectionText(one))
  })
}
