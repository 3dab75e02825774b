import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { hasScope, requireScope } from '../auth/scopes.ts'
import { Problem, errorTable } from '../core/errors.ts'
import type { Fault } from '../core/errors.ts'
import { labelsObject, wantedLabels } from '../core/labels.ts'
import { changesTyped, shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { sentAgain } from './notes.ts'
import { perform } from './perform.ts'
import { redirect, show } from './session.ts'
import { webhookViewers } from './views/console-layout.ts'
import { madePage, webhookFields, webhookPage, webhooksPage } from './views/console-webhooks.ts'
import type { ShownDelivery, ShownWebhook, TypedWebhook, WebhookDraft } from './views/console-webhooks.ts'

type Hook = FastifyRequest<{ Params: { id: string }, Body: unknown }>
type HookRoute = { Params: { id: string }, Body: unknown }

/** Forms about webhooks need their own scope. */
const ofWebhooks = { ...changesTyped, config: { ...changesTyped.config, scope: 'webhooks' } } as const

/** Where events are sent: what there is, and for the scope `webhooks` making and testing. */
export function webhookRoutes (app: FastifyInstance, services: Console): void {
  const { webhooks } = services

  app.get<HookRoute>('/webhooks', shows, async (request, reply) => await showAll(request, reply, 200))

  app.post<HookRoute>('/webhooks/new', ofWebhooks, async (request, reply) => {
    const typed = webhookIn(request.body)
    if (request.isSentAgain) return await showAll(request, reply, 200, { typed, problems: [`${sentAgain} Nothing was made.`] })
    const labels = typed.labels.replace(/\s*,\s*/g, ',')
    const wanted = labels === '' ? undefined : wantedLabels(labels)
    if (wanted === null) {
      return await showAll(request, reply, 400, { typed, problems: ['Labels are written run:42,team:red, 8 at most.'] })
    }
    const body = {
      url: typed.url,
      ...typed.format !== '' && { format: typed.format },
      ...typed.types.length > 0 && { types: typed.types },
      ...typed.inbox !== '' && { inbox: typed.inbox },
      ...wanted !== undefined && { labels: labelsObject(wanted) },
      ...typed.include && { include: ['task'] },
      ...typed.updates && { updates: true },
      ...typed.timezone !== '' && { timezone: typed.timezone },
    }
    try {
      const { answer } = await perform(services, request as FastifyRequest, 'createWebhook', { body })
      return show(reply, 200, madePage(request.caller, answer as ShownWebhook & { secret: string }))
    } catch (error) {
      if (!(error instanceof Problem) || ![400, 403, 409].includes(errorTable[error.code].status)) throw error
      services.refused(error.code)
      return await showAll(request, reply, errorTable[error.code].status, { typed, problems: wordsOf(error) })
    }
  })

  app.get<HookRoute>('/webhooks/:id', { ...shows, config: { scope: 'webhooks' } }, async (request, reply) => {
    const { params: { id } } = request
    const read = (name: string) => perform(services, request as FastifyRequest, name, { id, query: {} })
    const [{ answer: one }, { answer }] = await Promise.all([read('getWebhook'), read('listDeliveries')])
    const { items } = answer as { items: ShownDelivery[] }
    const wasSent = textOf(request.query, 'sent') === '1'
    return show(reply, 200, webhookPage(request.caller, one as ShownWebhook, items, wasSent))
  })

  app.post<HookRoute>('/webhooks/:id/test', ofWebhooks, async (request, reply) => {
    const { params: { id } } = request
    if (request.isSentAgain) return redirect(reply, `/console/webhooks/${encodeURIComponent(id)}`)
    await perform(services, request as FastifyRequest, 'testWebhook', { id })
    return redirect(reply, `/console/webhooks/${encodeURIComponent(id)}?sent=1`)
  })

  async function showAll (
    request: Hook, reply: FastifyReply, status: number, draft?: WebhookDraft
  ): Promise<FastifyReply> {
    const { caller } = request
    requireScope(caller, webhookViewers)
    const items = await webhooks.list(caller.tenant).then(
      answer => (answer as { items: ShownWebhook[] }).items,
      error => {
        if (error instanceof Problem && error.code === 'events_off') return null
        throw error
      }
    )
    const mayMake = hasScope(caller, 'webhooks')
    return show(reply, status, webhooksPage({ caller, items, mayMake, draft }))
  }
}

function webhookIn (form: unknown): TypedWebhook {
  const text = (name: string) => (textOf(form, name) ?? '').trim()
  const types = Object.hasOwn(Object(form), 'types') ? [(form as { types: unknown }).types].flat().map(String) : []
  return {
    url: text('url'),
    format: text('format'),
    types,
    inbox: text('inbox'),
    labels: text('labels'),
    include: text('include') === '1',
    updates: text('updates') === '1',
    timezone: text('timezone'),
  }
}

/** What is wrong, in plain words, by the names of the form's fields. */
function wordsOf ({ code, more }: Problem): string[] {
  const faults = (more.members?.errors ?? []) as Fault[]
  if (faults.length === 0) return [more.detail ?? errorTable[code].detail]
  return faults.map(({ pointer, message }) => {
    const [, name = ''] = pointer.split('/')
    return `${webhookFields[name] ?? name}: ${message.replace(/^body: /, '')}.`
  })
}
