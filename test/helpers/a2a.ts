import { SendMessageRequest, Task as TaskType } from '@a2a-js/sdk'
import type { Message, Task } from '@a2a-js/sdk'
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client'
import type { Client } from '@a2a-js/sdk/client'
import type { Test } from 'tap'
import { secrets } from './app.ts'
import type { Who } from './app.ts'
import { clientTest } from './client.ts'
import type { ClientTest } from './client.ts'
import type { TestStoreOptions } from './redis.ts'

/** A2A by the client of the protocol's authors. */

export const bindings = ['JSONRPC', 'HTTP+JSON'] as const
export type Binding = typeof bindings[number]

export const card = { description: 'Reviews drafts.', skills: [{ id: 'review', name: 'Review', description: 'Reads and says what is wrong.', tags: ['text'] }] }

export interface A2aTest extends ClientTest {
  /** The address of the inbox `desk` as an agent. */
  agent: string
  client2a (who: Who, binding?: Binding): Promise<Client>
  /** A request in JSON-RPC, as it is, with alice's key. @returns the answer's text, and its status */
  rpc (method: string, params: object | string, more?: { who?: Who, id?: string, headers?: Record<string, string> }): Promise<{ status: number, text: string, json: any, headers: Record<string, unknown> }>
}

/** The service, with the inbox `desk` as an agent. */
export async function a2aTest (t: Test, env: Record<string, string> = {}, more: object = {}, storeOptions: TestStoreOptions = {}): Promise<A2aTest> {
  const service = await clientTest(t, env, storeOptions)
  const put = await service.call('operator', 'PUT', '/api/inboxes/desk', { card: { ...card, ...more } })
  t.equal(put.statusCode, 200, put.body)
  const agent = `${service.address}/a2a/default/desk`
  return {
    ...service,
    agent,
    client2a: (who, binding = 'JSONRPC') => {
      const fetchImpl: typeof fetch = (url, init = {}) => {
        const headers = new Headers(init.headers)
        headers.set('authorization', `Bearer ${secrets[who]}`)
        return fetch(url, { ...init, headers })
      }
      const factory = new ClientFactory({
        transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
        preferredTransports: [binding],
        cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
      })
      return factory.createFromUrl(`${agent}/`)
    },
    async rpc (method, params, { who = 'alice', id = '1', headers = {} } = {}) {
      const body = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${typeof params === 'string' ? params : JSON.stringify(params)}}`
      const answer = await service.call(who, 'POST', '/a2a/default/desk', body, { 'a2a-version': '1.0', ...headers })
      return { status: answer.statusCode, text: answer.body, json: answer.body === '' ? undefined : answer.json(), headers: answer.headers }
    }
  }
}

let number = 0

/** @param parts as the protocol's JSON has them @param more of the request's configuration */
export function sending (parts: object[], more: object = {}, message: object = {}): SendMessageRequest {
  return SendMessageRequest.fromJSON({ message: { messageId: `m-${++number}`, role: 'ROLE_USER', parts, ...message }, ...Object.keys(more).length > 0 && { configuration: more } })
}

export const text = (words: string) => [{ text: words }]

/** A task in the protocol's JSON. */
export function shown (task: Task | Message): any {
  return TaskType.toJSON(task as Task)
}
