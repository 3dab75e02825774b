import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import { startHaproxy } from '../faults/fleet/haproxy.ts'
import { startNginx } from '../faults/fleet/nginx.ts'

/** tap's `skip` option for tests that need a single replica: the reason if there are three, or false. */
export const ofOneReplica = process.env.TEST_THROUGH === undefined ? false : 'looks at one replica'

/** The balancer between `call` and the service in this run: `haproxy`, `nginx`, or none. */
export const through = process.env.TEST_THROUGH

type Inject = (options: InjectOptions | string) => Promise<LightMyRequestResponse>

/**
 * Lets three replicas listen, and starts the balancer in front of them.
 * @returns a replacement for inject, which sends the request over HTTP and returns the response in inject's form
 */
export async function behindBalancer (t: Test, replicas: readonly FastifyInstance[]): Promise<Inject> {
  const at = await Promise.all(replicas.map(async app => new URL(await app.listen({ host: '127.0.0.1', port: 0 })).host))
  const url = through === 'nginx' ? await startNginx(t, at) : (await startHaproxy(t, at)).url
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  return async options => await send(new URL(url), agent, typeof options === 'string' ? { url: options } : options)
}

async function send ({ hostname, port }: URL, agent: Agent, options: InjectOptions): Promise<LightMyRequestResponse> {
  const { method = 'GET', url, path = url, headers, payload } = options
  // The raw path: URL would normalise an unusual one.
  const asking = request({ hostname, port, agent, method, path: String(path), headers: headers as Record<string, string> })
  const isObject = typeof payload === 'object' && !Buffer.isBuffer(payload)
  if (isObject && !asking.hasHeader('content-type')) asking.setHeader('content-type', 'application/json')
  const body = isObject ? JSON.stringify(payload) : payload as string | Buffer | undefined
  if (body !== undefined) asking.setHeader('content-length', Buffer.byteLength(body))
  asking.end(body)
  const [answer] = await once(asking, 'response') as [IncomingMessage]
  return shaped(answer, await buffer(answer))
}

/** The response in inject's form, as far as tests read it. */
function shaped (answer: IncomingMessage, rawPayload: Buffer): LightMyRequestResponse {
  const body = rawPayload.toString('utf8')
  const { statusCode, statusMessage, headers } = answer
  const cookies = (headers['set-cookie'] ?? []).map(cookie => {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!
    return { name, value }
  })
  const shape = { statusCode, statusMessage, headers, rawPayload, payload: body, body, cookies, json: () => JSON.parse(body) }
  return shape as unknown as LightMyRequestResponse
}
