import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from '@a2a-js/sdk'
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore, JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server'
import type { ExecutionEventBus, RequestContext } from '@a2a-js/sdk/server'
import { text as readText } from 'node:stream/consumers'
import type { Test } from 'tap'
import { card } from './a2a.ts'
import { secrets } from './app.ts'
import { serve } from './client.ts'
import type { ClientTest } from './client.ts'
import { handoff } from './command.ts'

/** Agents of A2A in JSON-RPC, by the server of the protocol's authors or by hand, and an inbox that one serves. */

/** What alice passes to the inbox `front`, which bob serves by an agent. */
export function front (service: ClientTest) {
  const env = { HANDOFF_URL: service.address, HANDOFF_KEY: secrets.bob }
  const status = async (id: string) => (await service.call('alice', 'GET', `/api/status/${id}`)).json()
  return {
    env,
    status,
    work: (url: string, ...options: string[]) => handoff(['work', 'front', '--once', '--a2a', url, ...options], { env }),
    pass: async (body: object | string = {}) => {
      const text = typeof body === 'string' ? body : JSON.stringify({ task: 'x', to: 'front', ...body })
      return (await service.call('alice', 'POST', '/api/pass', text)).json().handoff_id as string
    },
  }
}

/** What an agent says of a message, in the protocol's JSON. */
export interface Says {
  message (parts: object[]): void
  task (): void
  status (state: string, ...words: string[]): void
  artifact (artifactId: string, parts: object[]): void
}

/** Works on a message. */
type Work = (says: Says, context: RequestContext) => Promise<void> | void

interface AskedOfAgent { method: string, params: any }

/** @param more of its card. `cut`: after how many events a stream breaks */
export async function remoteAgent (t: Test, work: Work, { streaming = true, cut = Infinity }: { streaming?: boolean, cut?: number } = {}): Promise<{ url: string, asked: AskedOfAgent[] }> {
  const asked: AskedOfAgent[] = []
  /** Made once its address is known. */
  const own: { handler?: JsonRpcTransportHandler, document?: object } = {}
  const url = await serve(t, async (request, response) => {
    if (request.method === 'GET') return response.writeHead(request.url!.endsWith('agent-card.json') ? 200 : 404).end(JSON.stringify(own.document))
    const call = JSON.parse(await readText(request)) as AskedOfAgent
    asked.push(call)
    const answer = await own.handler!.handle({ ...call }, new ServerCallContext({ requestedVersion: '1.0' }))
    if (!(Symbol.asyncIterator in answer)) return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let count = 0
    try {
      for await (const event of answer) {
        // What its task has come to is kept by whoever reads on.
        if (count++ === cut) response.destroy()
        if (response.destroyed) continue
        await new Promise(resolve => response.write(`data: ${JSON.stringify(event)}\r\n\r\n`, resolve))
      }
      response.end()
    } catch {
      response.destroy()
    }
  })
  own.document = { name: 'Remote', version: '1', defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], ...card, capabilities: { streaming }, supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }
  const executor = {
    execute: async (context: RequestContext, bus: ExecutionEventBus) => { await work(saying(context, bus), context) },
    cancelTask: async (taskId: string, bus: ExecutionEventBus) => { bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId: 'c', status: { state: 'TASK_STATE_CANCELED' } }))) },
  }
  own.handler = new JsonRpcTransportHandler(new DefaultRequestHandler(AgentCard.fromJSON(own.document), new InMemoryTaskStore(), executor))
  return { url, asked }
}

let number = 0

function saying ({ taskId, contextId }: RequestContext, bus: ExecutionEventBus): Says {
  const said = (parts: object[]) => ({ messageId: `said-${++number}`, taskId, contextId, role: 'ROLE_AGENT', parts })
  const now = () => new Date().toISOString()
  return {
    message: parts => bus.publish(AgentEvent.message(Message.fromJSON(said(parts)))),
    task: () => bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status: { state: 'TASK_STATE_WORKING', timestamp: now() } }))),
    status: (state, ...words) => bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({
      taskId, contextId, status: { state: `TASK_STATE_${state}`, timestamp: now(), ...words.length > 0 && { message: said(words.map(text => ({ text }))) } }
    }))),
    artifact: (artifactId, parts) => bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact: { artifactId, parts }, lastChunk: true }))),
  }
}

/** What a card says of an agent in JSON-RPC, and nothing more. */
export function plainCard (url: string, more: object = {}): string {
  return JSON.stringify({ ...more, supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] })
}

/**
 * An agent that answers by hand: with what is to be in the answer's JSON, with the events of a stream that breaks then, or never.
 * @returns its address, and which methods were called
 */
export async function scriptedAgent (t: Test, answer: (method: string) => object | object[] | undefined): Promise<{ url: string, methods: string[] }> {
  const methods: string[] = []
  const url = await serve(t, async (request, response) => {
    if (request.method === 'GET') return response.end(plainCard(`http://${request.headers.host}/`, { capabilities: { streaming: true } }))
    const { method } = JSON.parse(await readText(request)) as AskedOfAgent
    methods.push(method)
    const what = answer(method)
    if (what === undefined) return
    if (!Array.isArray(what)) return response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...what }))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(what.map(result => `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`).join(''), () => response.destroy())
  })
  return { url, methods }
}
