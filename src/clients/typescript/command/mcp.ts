import { reasonOf, redirectOf } from '../call.ts'
import { isHandoffError } from '../index.ts'
import type { HandoffClient } from '../index.ts'
import { memberTexts } from '../json.ts'
import { settingsOf } from '../settings.ts'
import type { Settings } from '../settings.ts'
import { onStopSignal } from './common/signals.ts'
import { clientFor, madeFor } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { endBy, giveBack, undoNext, undoOne } from './catch.ts'
import { utf8 } from './output.ts'

/**
 * `handoff mcp`: MCP over standard input and output, for one key. Each input line is one JSON-RPC message and is sent
 * to POST /mcp unchanged, so payloads stay literal; only a catch that waits gets an idempotency key if it has none, by
 * which what it catches while it is ended can be given back. Each message that comes back is one line on standard
 * output.
 */

interface Message {
  id?: string | number
  method?: string
  params?: {
    name?: string
    requestId?: string | number
    protocolVersion?: string
    _meta?: Record<string, unknown>
    arguments?: { wait?: number, id?: string, inbox?: string, inboxes?: string[], idempotency_key?: string | null }
  }
}

const byteOrderMark = Buffer.from('\ufeff')

/** From 2026-07-28 on, each message has its protocol version here. */
const versionMember = 'io.modelcontextprotocol/protocolVersion'

/**
 * Forwards messages until standard input ends and every message has been answered, or no client takes answers.
 * @returns the exit status
 */
export async function mcp ({ tools, ...options }: AskOptions & { tools?: string }): Promise<number> {
  const settings = madeFor(options, settingsOf)
  const bridge = new Bridge(settings, tools === undefined ? '' : `?tools=${tools}`, clientFor(options))
  const underWay = new Set<Promise<void>>()
  let isRead = true
  const deaf = () => {
    isRead = false
    bridge.abandon()
    process.stdin.destroy()
  }
  process.stdout.once('error', deaf)
  let by: NodeJS.Signals | undefined
  const unlisten = onStopSignal(signal => {
    by = signal
    isRead = false
    bridge.close()
    bridge.abandon(message => !catches(message))
    process.stdin.destroy()
  }, () => process.exit(1))
  try {
    for await (const line of linesOf(process.stdin)) {
      const sent = bridge.send(line).finally(() => underWay.delete(sent))
      underWay.add(sent)
    }
  } catch (error) {
    if (isRead) throw error
  }
  bridge.close()
  await Promise.all(underWay)
  process.stdout.off('error', deaf)
  unlisten()
  if (by !== undefined) endBy(by)
  return 0
}

/**
 * Lines as they came, apart from empty ones and a byte order mark in front. Only a line feed ends one: JSON's strings
 * may have other line separators.
 */
async function * linesOf (input: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer[] = []
  for await (const chunk of input) {
    let start = 0
    for (let end; (end = chunk.indexOf('\n', start)) !== -1; start = end + 1) {
      const line = Buffer.concat([...rest, chunk.subarray(start, end)])
      rest = []
      if (!isBlank(line)) yield withoutMark(line)
    }
    rest.push(chunk.subarray(start))
  }
  const last = Buffer.concat(rest)
  if (!isBlank(last)) yield withoutMark(last)
}

/** Without UTF-8's byte order mark, which some programs write first. */
function withoutMark (line: Buffer): Buffer {
  return line.subarray(0, 3).equals(byteOrderMark) ? line.subarray(3) : line
}

function isBlank (line: Buffer): boolean {
  return line.toString().trim() === ''
}

class Bridge {
  readonly #address: string
  readonly #settings: Pick<Settings, 'authorization' | 'fetch'>
  readonly #client: HandoffClient
  /** The protocol version that an older client's handshake settled on. */
  #version: string | undefined
  readonly #waiting = new Map<string | number, { ending: AbortController, message: Message }>()

  /** @param client gives back what no model is to have */
  constructor (settings: Settings, query: string, client: HandoffClient) {
    this.#client = client
    this.#settings = settings
    this.#address = `${settings.baseUrl}/mcp${query}`
  }

  /** Its client has gone, or goes: nothing is to be caught for it any more. What doesn't catch is answered. */
  close (): void {
    for (const { ending, message } of this.#waiting.values()) {
      if (!waitsToCatch(message)) continue
      ending.abort()
      refuse(message, 'Standard input ended while this call waited.')
    }
  }

  /** No answers to these are awaited any more. */
  abandon (which: (message: Message) => boolean = () => true): void {
    for (const { ending, message } of this.#waiting.values()) if (which(message)) ending.abort()
  }

  /** Never rejects: what goes wrong is a JSON-RPC error, for the client that waits for an answer. */
  async send (line: Buffer): Promise<void> {
    const message = read(line.toString())
    if (message === null) {
      return write({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'That is not valid JSON.' } })
    }
    const { id, method, params } = message
    // Its client waits no more: nothing is to be caught for it. The service hears of it by the end of the connection.
    if (method === 'notifications/cancelled' && params?.requestId !== undefined) {
      this.#waiting.get(params.requestId)?.ending.abort()
    }
    const ending = new AbortController()
    const keyed = waitsToCatch(message) ? withKey(line, message) : undefined
    if (id !== undefined) this.#waiting.set(id, { ending, message })
    try {
      await this.#pass(await this.#ask(message, keyed?.line ?? line, ending.signal), message)
    } catch (error) {
      if (!ending.signal.aborted) {
        refuse(message, isHandoffError(error)
          ? error.detail
          : `The service at ${this.#address} can't be reached: ${reasonOf(error)}`)
      } else if (keyed !== undefined) {
        await giveBack(this.#client, { idempotencyKey: keyed.key }, undoOf(message), ended)
      }
    } finally {
      if (id !== undefined) this.#waiting.delete(id)
    }
  }

  /** Where its key is refused, and another one may be had, it asks once more. */
  async #ask (message: Message, body: Buffer, signal: AbortSignal): Promise<Response> {
    const { authorization: { read, renew }, fetch } = this.#settings
    const ask = async (authorize: typeof read) => await fetch(this.#address, {
      method: 'POST',
      headers: { authorization: (await authorize())!, ...this.#headersOf(message) },
      body,
      // A redirect isn't followed: the payload would go to an address that wasn't configured.
      redirect: 'manual',
      signal
    })
    const response = await ask(read)
    if (response.status !== 401 || renew === undefined) return response
    await response.body?.cancel()
    return await ask(renew)
  }

  async #pass (response: Response, message: Message): Promise<void> {
    const type = response.headers.get('content-type') ?? ''
    if (type.startsWith('text/event-stream')) return await passEvents(response, message)
    const text = await response.text()
    const answer = read(
      text
    ) as { error?: object, result?: { protocolVersion?: string }, id?: unknown, detail?: string, code?: string } | null
    if (answer === null || !('jsonrpc' in answer)) {
      // A problem of the service's, or a gateway's page; what has no id is answered with nothing.
      return refuse(message, answer?.detail ?? `The service answered ${[
        response.status, redirectOf(response.status, response.headers)
      ].filter(Boolean).join(', ')}.`, answer?.code === undefined ? undefined : answer)
    }
    if (message.method === 'initialize') this.#version = answer.result?.protocolVersion
    // What can't be read as a message is refused without its id; here it is known, and its client waits for that.
    if (answer.id === null && answer.error !== undefined && message.id !== undefined) {
      return write({ ...answer, id: message.id })
    }
    write(text.replace(/[\r\n]+/g, ' '), message)
  }

  #headersOf ({ method, params }: Message): Record<string, string> {
    const own = params?._meta?.[versionMember]
    const version = typeof own === 'string' ? own : this.#version
    const isNewer = typeof own === 'string'
    return {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...isVisible(version) && method !== 'initialize' && { 'mcp-protocol-version': version },
      ...isNewer && isVisible(method) && { 'mcp-method': method },
      ...isNewer && isVisible(params?.name) && { 'mcp-name': params.name },
    }
  }
}

/** Can it stand in a header field? The service says what is wrong with what can't. */
function isVisible (text: unknown): text is string {
  return typeof text === 'string' && /^[!-~]+$/.test(text)
}

function read (line: string): Message | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : null
  } catch {
    return null
  }
}

function catches ({ method, params }: Message): boolean {
  return method === 'tools/call' && /^handoff_catch/.test(params?.name ?? '')
}

/** Would it catch something after a while? */
function waitsToCatch (message: Message): boolean {
  return catches(message) && (message.params?.arguments?.wait ?? 0) > 0
}

/** Why what came too late is given back. */
const ended = 'The call that caught it was ended by its client.'

function undoOf ({ params }: Message) {
  const { id, inbox, inboxes } = params?.arguments ?? {}
  return id === undefined ? undoNext({ ...inbox != null && { inbox }, ...inboxes != null && { inboxes } }) : undoOne(id)
}

/** The message with a key, all else as it came; undefined for what the service refuses anyway. */
function withKey (line: Buffer, { params }: Message): { key: string, line: Buffer } | undefined {
  const { idempotency_key: own } = params!.arguments!
  if (typeof own === 'string') return { key: own, line }
  const text = utf8(line)
  if (text === undefined || own != null) return undefined
  const key = crypto.randomUUID()
  const replaced = (json: string, name: string, by: (inner: string) => string) =>
    `{${[...memberTexts(json)].map(([one, value]) => `${JSON.stringify(one)}:${one === name ? by(value) : value}`).join()}}`
  const keyed = (json: string) =>
    `{${[...memberTexts(json)].filter(([name]) => name !== 'idempotency_key')
      .map(([name, value]) => `${JSON.stringify(name)}:${value},`).join('')}"idempotency_key":"${key}"}`
  const all = replaced(text.trim(), 'params', json => replaced(json, 'arguments', keyed))
  return { key, line: Buffer.from(all) }
}

/** Passes on what a stream says, which ends with the answer. */
async function passEvents (response: Response, message: Message): Promise<void> {
  let isAnswered = false
  for await (const data of eventsOf(response)) {
    const event = read(data)
    if (event !== null && 'id' in event && !('method' in event)) isAnswered = true
    write(data, message)
  }
  if (!isAnswered) refuse(message, 'The service’s answer broke off.')
}

/** Answers with an error, where the client waits for an answer. */
function refuse ({ id, method }: Message, message: string, data?: object): void {
  if (id !== undefined && method !== undefined) {
    write({ jsonrpc: '2.0', id, error: { code: -32000, message, ...data !== undefined && { data } } })
  }
}

/** @param to what it answers: if it doesn't arrive, what it caught is reported */
function write (message: object | string, to?: Message): void {
  const line = typeof message === 'string' ? message : JSON.stringify(message)
  process.stdout.write(`${line}\n`, error => {
    if (error == null || to === undefined || !catches(to)) return
    for (const [, id] of line.matchAll(
      /^.{0,300}?\\"handoff_id\\":\\"([\w-]{25})\\"/g
    )) process.stderr.write(`${id} is caught, and yours\n`)
  })
}

/** The data of each server-sent event. Each is one message. */
async function * eventsOf (response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body!) {
    const events = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split(/\r?\n\r?\n/)
    rest = events.pop()!
    for (const event of events) {
      const data =
        event.split(/\r?\n/).filter(line => line.startsWith('data:')).map(line => line.slice(5).trimStart()).join(' ')
      if (data !== '') yield data
    }
  }
}
