import { createInterface } from 'node:readline'
import { reasonOf } from '../../client/attempt.ts'
import { settingsOf } from '../../client/settings.ts'
import { madeFor } from './ask.ts'
import type { AskOptions } from './ask.ts'

/**
 * `handoff mcp`: the service's MCP over standard input and output, for one key. Each line is one JSON-RPC message and goes to POST /mcp as it
 * is, so payloads stay literal; whatever comes back is a line on standard output.
 */

interface Message { id?: string | number, method?: string, params?: { name?: string, requestId?: string | number, protocolVersion?: string, _meta?: Record<string, unknown> } }

/** In messages of 2026-07-28 and later each says its version. */
const versionMember = 'io.modelcontextprotocol/protocolVersion'

/** Forwards messages until standard input ends, and what is under way has been answered. @returns the exit status */
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
  /** The version that the handshake of an older client settled on. */
  #version: string | undefined
  readonly #waiting = new Map<string | number, AbortController>()

  constructor (address: string, authorization: string) {
    this.#address = address
    this.#authorization = authorization
  }

  /** Never rejects: what goes wrong is a JSON-RPC error, for whoever waits for an answer. */
  async send (line: string): Promise<void> {
    const message = read(line)
    if (message === null) return write({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'That is not valid JSON.' } })
    const { id, method, params } = message
    // Its client waits no more: nothing is to be caught for it. The service hears of it by the end of the connection.
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
      // A problem of the service's, or a gateway's page.
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

/** The data of each server-sent event: one message each. */
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
