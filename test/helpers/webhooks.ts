import { randomUUID } from 'node:crypto'
import type { LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { testApp } from './app.ts'
import type { TestApp } from './app.ts'
import { keepSecret } from './log-sink.ts'
import type { TestStoreOptions } from './redis.ts'
import { until } from './until.ts'

export const webhookSecret = 'webhook-root-secret-0123456789'
/** A key with the scope webhooks of each tenant. */
export const webhookKeys = { default: 'webhooks-key-secret-0123456789', other: 'foreign-webhooks-key-0123456789' }
keepSecret(webhookSecret, ...Object.values(webhookKeys))

export interface Delivery { id: string, type: string, status: string, attempts: number, last_status: number | null, last_error: string | null, why?: string, summarised?: number, last_at: string | null, next_at: string | null }
export interface MadeWebhook { id: string, url: string, secret: string, [member: string]: unknown }

export interface WebhookApp extends TestApp {
  /** Asks about webhooks, with a key of the tenant. */
  hooks (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown, tenant?: 'default' | 'other'): Promise<LightMyRequestResponse>
  make (url: string, more?: object, tenant?: 'default' | 'other'): Promise<MadeWebhook>
  deliveries (id: string, query?: string): Promise<Delivery[]>
  /** Once a webhook's deliveries are like this. */
  untilDeliveries (id: string, like: (deliveries: Delivery[]) => boolean): Promise<Delivery[]>
  /** Passes a handoff, as often as the service is unavailable. @returns its id */
  pass (more?: object, who?: 'alice' | 'foreignAlice'): Promise<string>
}

/** The whole service with webhooks, which may go to this machine. It delivers. */
export async function webhookApp (t: Test, env: Record<string, string> = {}, options: TestStoreOptions = {}, isDelivering = true): Promise<WebhookApp> {
  const keys = (['default', 'other'] as const).map(tenant => ({ caller: callerOf(tenant, 'ops', ['webhooks']), secret: webhookKeys[tenant] }))
  const settings = { EVENTS_RETENTION: '60', WEBHOOK_SECRET: webhookSecret, WEBHOOK_ALLOW: '127.0.0.0/8', ...env }
  const service = await testApp(t, settings, options, keys)
  const { app, call } = service
  const hooks: WebhookApp['hooks'] = (method, path, body, tenant = 'default') => app.inject({
    method,
    url: `/api/webhooks${path}`,
    headers: { authorization: `Bearer ${webhookKeys[tenant]}`, ...body !== undefined && { 'content-type': 'application/json' } },
    ...body !== undefined && { payload: typeof body === 'string' ? body : JSON.stringify(body) },
  })
  const deliveries: WebhookApp['deliveries'] = async (id, query = '') => (await hooks('GET', `/${id}/deliveries${query}`)).json().items
  if (isDelivering) app.deliverer!.start()
  return {
    ...service,
    hooks,
    deliveries,
    async make (url, more = {}, tenant = 'default') {
      const answer = await hooks('POST', '', { url, ...more }, tenant)
      if (answer.statusCode !== 201) throw new Error(answer.body)
      keepSecret(answer.json().secret)
      return answer.json()
    },
    untilDeliveries: (id, like) => until(async () => {
      const found = await deliveries(id)
      return like(found) ? found : null
    }),
    pass: (more = {}, who = 'alice') => {
      // A busy machine may take longer than the service waits for Redis. Then the same pass is sent again, and makes no second handoff.
      const key = { 'idempotency-key': randomUUID() }
      return until(async () => {
        const answer = await call(who, 'POST', '/api/pass', { task: 't', ...more }, key)
        if (answer.statusCode === 503) return undefined
        if (answer.statusCode !== 201) throw new Error(answer.body)
        return answer.json().handoff_id as string
      })
    },
  }
}
