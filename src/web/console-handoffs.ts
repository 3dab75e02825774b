import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, errorTable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { reasonRules } from '../core/schemas/attempts.ts'
import type { WaitsFor } from '../core/schemas/handoffs.ts'
import { hasScope, requireScope } from '../auth/scopes.ts'
import type { Inspected } from '../handoffs/lists/histories.ts'
import { changes, changesTyped, shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { sentAgain } from './notes.ts'
import { perform } from './perform.ts'
import { redirect, sendWhole, show } from './session.ts'
import { cancelPage, reissuePage } from './views/console-confirm.ts'
import { everythingView, nothingShown } from './views/console-everything.ts'
import { handoffPage } from './views/console-handoff.ts'

interface One { Params: { id: string } }
interface Sent extends One { Body: Record<string, unknown> | undefined }

/** A handoff, and operators' forms for it. */
export function handoffRoutes (app: FastifyInstance, services: Console): void {
  const { histories, graphs, titles } = services
  const asks = { ...shows, config: changes.config }
  const inspect = (request: FastifyRequest<One>) =>
    histories.inspect(request.caller, request.params.id, request)

  app.get<One>('/handoffs/:id', shows, async (request, reply) => showOne(request, reply, 200, await inspect(request)))

  app.get<One>('/handoffs/:id/whole', shows, async (request, reply) => {
    requireScope(request.caller, 'read')
    const { id } = request.params
    const { answer } = await perform(services, request as FastifyRequest, 'get', { id })
    return sendWhole(reply, `handoff-${id}`, answer as Buffer)
  })

  app.get<One>('/handoffs/:id/cancel', asks, async (request, reply) =>
    show(reply, 200, cancelPage(request.caller, await inspect(request))))

  app.get<One>('/handoffs/:id/reissue', asks, async (request, reply) =>
    show(reply, 200, reissuePage(request.caller, await inspect(request))))

  app.post<Sent>('/handoffs/:id/cancel', changesTyped, async (request, reply) => {
    const reason = textOf(request.body, 'reason')?.replaceAll('\r\n', '\n').trim() ?? ''
    const length = [...reason].length
    if (length > reasonRules.maxLength) {
      const problem = `The reason has ${length} characters; at most ${reasonRules.maxLength} are allowed. ` +
        'Nothing was cancelled yet.'
      return show(reply, 400, cancelPage(request.caller, await inspect(request), { problem, reason }))
    }
    if (request.isSentAgain) {
      const one = await inspect(request)
      if (one.created_at === request.body?.created_at) {
        return show(reply, 200, cancelPage(request.caller, one, { problem: `${sentAgain} Nothing was cancelled yet.`, reason }))
      }
    }
    const body = { force: textOf(request.body, 'force') === '1', ...reason !== '' && { reason } }
    const answer = await change(request, reply, 'cancel', body)
    return answer === null ? reply : redirect(reply, `/console/handoffs/${request.params.id}`)
  })

  app.post<Sent>('/handoffs/:id/reissue', changes, async (request, reply) => {
    const answer = await change(request, reply, 'reissue', {})
    return answer === null ? reply : redirect(reply, `/console/handoffs/${answer.handoff_id}`)
  })

  async function showOne (
    request: FastifyRequest<One>, reply: FastifyReply, status: number, one: Inspected, problem?: string
  ): Promise<FastifyReply> {
    const { caller } = request
    const isPart = request.headers['hx-request'] !== undefined
    const [attempts, history, graph, waits, everything] = await Promise.all([
      histories.attempts(caller, one, request), histories.history(caller, one),
      graphs.around(caller, one.handoff_id, request), waitsFor(request, one), everythingOf(request, one, isPart)
    ])
    const known = await titles.of(caller, [{ id: one.handoff_id, to: one.to }, ...graph?.nodes ?? []], request)
    const { runLabels } = services.about
    const page = { one, attempts, history, graph, titles: known, waits, everything, isPart, runLabels }
    return show(reply, status, handoffPage(caller, page, problem))
  }

  async function waitsFor (request: FastifyRequest<One>, one: Inspected): Promise<WaitsFor[] | null> {
    if (one.status !== 'pending') return null
    const query = { explain: 'true' }
    const { answer } = await perform(services, request as FastifyRequest, 'status', { id: one.handoff_id, query })
    return (JSON.parse(String(answer)) as { waits_for?: WaitsFor[] }).waits_for ?? null
  }

  /** What a reader sees of it. A part of the page hasn't it: so nothing is read, and logged, again and again. */
  async function everythingOf (
    request: FastifyRequest<One>, one: Inspected, isPart: boolean
  ): Promise<string | null> {
    if (!hasScope(request.caller, 'read')) return null
    if (isPart) return ''
    try {
      const { answer } = await perform(services, request as FastifyRequest, 'get', { id: one.handoff_id })
      const isLive = one.status === 'pending' || one.status === 'caught'
      return everythingView(answer as Buffer, isLive, `/console/handoffs/${one.handoff_id}/whole`)
    } catch (error) {
      const code = error instanceof Problem ? error.code : undefined
      if (code !== 'not_addressee' && code !== 'payload_locked') throw error
      return nothingShown(code)
    }
  }

  /** Does it as the API does. Where that is refused, the handoff's page says why. @returns null if it was refused */
  async function change (
    request: FastifyRequest<Sent>, reply: FastifyReply, name: 'cancel' | 'reissue', body: object
  ): Promise<{ handoff_id: string } | null> {
    const refuse = async (code: ErrorCode, problem: string) => {
      services.refused(code)
      await showOne(request, reply, errorTable[code].status, await inspect(request), `${problem} Nothing was changed.`)
      return null
    }
    if ((await inspect(request)).created_at !== request.body?.created_at || request.isSentAgain) {
      return refuse('content_changed', 'The handoff that you saw is gone, and this is another one.')
    }
    try {
      const { answer } = await perform(services, request as FastifyRequest, name, { id: request.params.id, body })
      return answer as { handoff_id: string }
    } catch (error) {
      if (!(error instanceof Problem) || ![409, 410].includes(errorTable[error.code].status)) throw error
      return refuse(error.code, errorTable[error.code].detail)
    }
  }
}
