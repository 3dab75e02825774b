import type { Reply } from '../../bench/http-client.ts'
import type { Key } from './load-keys.ts'

/** Requests of one key that leave together as a batch, and what came of each. */

/** A request as a batch has it. `body` is JSON text. */
export interface BatchedRequest { op: string, id?: string | undefined, body?: string | undefined, token: string | null }

interface Waiting { request: BatchedRequest, resolve (reply: Reply | null): void, reject (error: unknown): void }

/** How long the first of a batch waits for others (ms), and how many there are at most. */
const gatherMs = 20
const most = 100

export class Batches {
  readonly #send: (who: Key, body: string) => Promise<Reply | null>
  readonly #waiting = new Map<Key, Waiting[]>()

  /** @param send sends a batch's body @returns its answer; null for none */
  constructor (send: (who: Key, body: string) => Promise<Reply | null>) {
    this.#send = send
  }

  /** @returns what a single request would have been answered; null if no answer came */
  ask (who: Key, request: BatchedRequest): Promise<Reply | null> {
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(who)
      if (waiting !== undefined && waiting.length < most) return waiting.push({ request, resolve, reject })
      const first = [{ request, resolve, reject }]
      this.#waiting.set(who, first)
      setTimeout(() => {
        if (this.#waiting.get(who) === first) this.#waiting.delete(who)
        this.#ask(who, first).catch(error => { for (const { reject } of first) reject(error) })
      }, gatherMs)
    })
  }

  async #ask (who: Key, all: readonly Waiting[]): Promise<void> {
    const reply = await this.#send(who, `{"operations":[${all.map(({ request }) => textOf(request)).join(',')}]}`)
    const replies = reply?.status === 200 ? resultsIn(reply.body) : all.map(() => reply)
    if (replies.length !== all.length) throw new Error(`a batch of ${all.length} has ${replies.length} results: ${reply?.body}`)
    for (const [at, { resolve }] of all.entries()) resolve(replies[at]!)
  }
}

function textOf ({ op, id, body, token }: BatchedRequest): string {
  const members = [`"op":"${op}"`, id && `"id":"${id}"`, body && `"body":${body}`, token && `"idempotency_key":"${token}"`]
  return `{${members.filter(Boolean).join(',')}}`
}

/** The results of a batch's answer, each with its body's own text. */
function resultsIn (text: string): Reply[] {
  return objectsIn(text).map(result => {
    const at = result.indexOf('"body":') + '"body":'.length
    const { status, replayed = false } = JSON.parse(result) as { status: number, replayed?: boolean }
    return { status, body: result.slice(at, endOf(result, at)), replayed }
  })
}

/** The objects of the first array in a JSON text, as they are. */
export function objectsIn (text: string): string[] {
  const objects: string[] = []
  for (let at = text.indexOf('[') + 1; text[at] !== ']'; at += text[at] === ',' ? 1 : 0) {
    const end = endOf(text, at)
    objects.push(text.slice(at, end))
    at = end
  }
  return objects
}

/** Where the object ends that begins there. */
function endOf (json: string, from: number): number {
  let depth = 0
  for (let at = from; at < json.length; at++) {
    const char = json[at]
    if (char === '"') at = endOfString(json, at)
    else if (char === '{' || char === '[') depth++
    else if ((char === '}' || char === ']') && --depth === 0) return at + 1
  }
  throw new Error(`no end of the object at ${from}: ${json.slice(from, from + 200)}`)
}

function endOfString (json: string, from: number): number {
  let at = from + 1
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at
}
