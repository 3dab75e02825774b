import { createInterface } from 'node:readline'
import { reasonOf } from '../../client/attempt.ts'
import { settingsOf } from '../../client/settings.ts'
import { madeFor } from './ask.ts'
import type { AskOptions } from './ask.ts'

/**
 * `handoff mcp`: MCP over standard input and output, for one key. Each input line is one JSON-RPC message and is sent to POST /mcp unchanged, so
 * payloads stay literal. Each message that comes back is one line on standard output.
 */

interface Message { id?: string | number, method?: string, params?: { name?: string, requestId?: string | number, protocolVersion?: string, _meta?: Record<string, unknown> } }

/** From 2026-07-28 on, each message has its protocol version here. */
const versionMember = 'io.modelcontextprotocol/protocolVersion'

/** Forwards messages until standard input ends and every message has been answered. @returns the exit status */
export async function mcp (options: AskOptions): Promise<number> {
  const { baseUrl, authorization } = madeFor(options, settingsOf)
  const bridge = new Bridge(`${baseUrl}/mcp`, authorization!)
  const underWay = new Set<Promise<void>>()
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === '') continue
    const sent = bridge.send(line).finally(() => underWay.delete(sent))
    underWay.add(sent)
  }
  await Promise.all(underWay)
  return 0
}

class Bridge {
  readonly #address: string
  readonly #authorization: string
  /** The protocol version that an older client's handshake settled on. */
  #version: string | undefined
  readonly #waiting = new Map<string | number, AbortController>()

  constructor (address: string, authorization: string) {
    this.#address = address
    this.#authorization = authorization
  }

  /** Never rejects: an error becomes a JSON-RPC error, if the client waits for an answer. */
  async send (line: string): Promise<void> {
    const message = read(line)
    if (message === null) return write({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'That is not valid JSON.' } })
    const { id, method, params } = message
    // The client has stopped waiting, so nothing may be caught for it any more. Aborting closes the connection, and that tells the service.
    if (method === 'notifications/cancelled' && params?.requestId !== undefined) this.#waiting.get(params.requestId)?.abort()
    const ending = new AbortController()
    if (id !== undefined) this.#waiting.set(id, ending)
    try {
      const response = await fetch(this.#address, { method: 'POST', headers: this.#headersOf(message), body: line, signal: ending.signal })
      await this.#pass(response, message)
    } catch (error) {
      if (id !== undefined && !ending.signal.aborted) write({ jsonrpc: '2.0', id, error: { code: -32000, message: `The service at ${this.#address} can't be reached: ${reasonOf(error)}` } })
    } finally {
      if (id !== undefined) this.#waiting.delete(id)
    }
  }

  async #pass (response: Response, { id, method }: Message): Promise<void> {
    const type = response.headers.get('content-type') ?? ''
    if (type.startsWith('text/event-stream')) {
      for await (const data of eventsOf(response)) process.stdout.write(`${data}\n`)
      return
    }
    const text = await response.text()
    if (text === '') return
    const answer = read(text) as { error?: object, result?: { protocolVersion?: string }, detail?: string, code?: string } | null
    const isMessage = answer !== null && 'jsonrpc' in answer
    if (isMessage) {
      if (method === 'initialize') this.#version = answer.result?.protocolVersion
      process.stdout.write(`${text.replace(/[\r\n]+/g, ' ')}\n`)
    } else if (id !== undefined) {
      // A problem document of the service, or a gateway's page.
      write({ jsonrpc: '2.0', id, error: { code: -32000, message: answer?.detail ?? `The service answered ${response.status}.`, ...answer?.code !== undefined && { data: answer } } })
    }
  }

  #headersOf ({ method, params }: Message): Record<string, string> {
    const own = params?._meta?.[versionMember]
    const version = typeof own === 'string' ? own : this.#version
    return {
      authorization: this.#authorization,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...version !== undefined && method !== 'initialize' && { 'mcp-protocol-version': version },
      ...typeof own === 'string' && method !== undefined && { 'mcp-method': method },
      ...typeof own === 'string' && params?.name !== undefined && { 'mcp-name': params.name },
    }
  }
}

function read (line: string): Message | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : null
  } catch {
    return null
  }
}

function write (message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}

/** The data of each server-sent event. Each is one message. */
async function * eventsOf (response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body!) {
    const events = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split(/\r?\n\r?\n/)
    rest = events.pop()!
    for (const event of events) {
      const data = event.split(/\r?\n/).filter(line => line.startsWith('data:')).map(line => line.slice(5).trimStart()).join(' ')
      if (data !== '') yield data
    }
  }
}
