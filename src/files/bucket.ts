import { createHash, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Problem, Unavailable } from '../core/errors.ts'
import type { BucketPlace } from '../core/file-place.ts'
import type { FileWords } from '../store/files.ts'
import { anyType, attachment, placeOf } from './objects.ts'
import type { ObjectStore, SignedRequest, UrlSpan, Wanted } from './objects.ts'
import { presign, signHeaders } from './sigv4.ts'
import type { RequestKey } from './sigv4.ts'

/** How long the store has for an answer (ms). */
const patience = 10_000
/** Its answers to an upload that say what it can do: all others may go by. */
const verdicts: ReadonlySet<number> = new Set([400, 501])
/** How long what it may do better another time counts (ms). */
const triedAgain = 30_000

/**
 * Objects in a bucket, of S3 or what speaks its protocol: agents send and fetch the bytes themselves, by presigned
 * URLs. That what comes is what was declared rests on the store: it must check length and digest, which are signed.
 */
export class BucketStore implements ObjectStore {
  readonly #place: BucketPlace
  readonly #note: (fault: string | null) => void
  readonly #retryAfter: number
  #trial: Promise<Trial> | undefined

  /** @param note gets why it can't have files, or null, by each trial @param pause between trials (ms) */
  constructor (place: BucketPlace, note: (fault: string | null) => void = () => {}, pause = triedAgain) {
    this.#place = place
    this.#note = note
    this.#retryAfter = pause
  }

  async open (): Promise<string> {
    return `s3://${this.#place.bucket}/${this.#place.prefix}`
  }

  async admit (): Promise<void> {
    const fault = await this.fault()
    if (fault === null) return
    throw new Problem('unavailable', { detail: 'The store of files can’t be used; its operator sees why.' })
  }

  /**
   * Tries it once. That it takes wrong bytes, or does all as it should, is known for good; anything else may go by.
   * @returns why it can't have files, or null @throws {Unavailable}
   */
  async fault (): Promise<string | null> {
    const trial = this.#trial ??= this.#try()
    try {
      const { fault, endsAt } = await trial
      if (performance.now() < endsAt) return fault
      if (this.#trial === trial) this.#trial = undefined
      return await this.fault()
    } catch (error) {
      if (this.#trial === trial) this.#trial = undefined
      throw error
    }
  }

  async upload (object: string, { bytes, sha256 }: Wanted, span: UrlSpan): Promise<SignedRequest> {
    const headers = {
      'content-length': String(bytes),
      'x-amz-checksum-sha256': Buffer.from(sha256, 'hex').toString('base64'),
      'if-none-match': '*'
    }
    return { url: await this.#presigned('PUT', object, headers, span), headers }
  }

  async download (object: string, words: FileWords, span: UrlSpan): Promise<string> {
    return await this.#presigned('GET', object, {}, span, {
      'response-content-disposition': attachment(words), 'response-content-type': words.media_type ?? anyType
    })
  }

  async has (object: string, { bytes, sha256 }: Wanted): Promise<boolean> {
    const { status, headers } = await this.#ask('HEAD', object, { 'x-amz-checksum-mode': 'ENABLED' })
    if (status === 404) return false
    if (status !== 200) throw awayWith(status)
    return Number(headers.get('content-length')) === bytes &&
      headers.get('x-amz-checksum-sha256') === Buffer.from(sha256, 'hex').toString('base64')
  }

  async remove (object: string): Promise<void> {
    const { ok, status } = await this.#ask('DELETE', object)
    if (!ok && status !== 404) throw awayWith(status)
  }

  async * older (than: number): AsyncIterable<string> {
    const { prefix } = this.#place
    // The first form of the list, which every store has: a page begins after a key.
    for (let marker = '', isMore = true; isMore;) {
      const before = marker
      const { status, text } = await this.#ask('GET', null, {}, { prefix, marker })
      if (status !== 200) throw awayWith(status)
      for (const [, item = ''] of text.matchAll(/<Contents>([^]*?)<\/Contents>/g)) {
        marker = elementOf(item, 'Key')
        const object = marker.slice(prefix.length)
        if (placeOf(object) !== undefined && Date.parse(elementOf(item, 'LastModified')) < than) yield object
      }
      isMore = elementOf(text, 'IsTruncated') === 'true' && marker !== before
    }
  }

  async #try (): Promise<Trial> {
    const { fault, isProof } = await this.#tried().catch(error => {
      if (error instanceof Unavailable) this.#note(error.message)
      throw error
    })
    this.#note(fault)
    return { fault, endsAt: isProof ? Infinity : performance.now() + this.#retryAfter }
  }

  /** Whether it refuses other bytes than were signed, takes the right ones, and says what it has. */
  async #tried (): Promise<{ fault: string | null, isProof: boolean }> {
    const object = `trial-${randomUUID()}`
    const [right, wrong] = ['right', 'wrong']
    const wanted = { bytes: right.length, sha256: createHash('sha256').update(right).digest('hex') }
    const span = { from: Date.now(), until: Date.now() + 60_000 }
    const put = async (body: string) => {
      const headers = (await this.upload(object, wanted, span)).headers
      // Where the service reaches it, which may be elsewhere than where agents do.
      const url = await this.#presigned('PUT', object, headers, span, {}, this.#place.endpoint)
      return await answerOf(url, { method: 'PUT', headers, body })
    }
    try {
      const { ok, status } = await put(wrong)
      if (ok) {
        const fault = 'it took bytes with another SHA-256 than was signed, so nothing would say that a file is what ' +
          'was declared'
        return { fault, isProof: true }
      }
      // What it refuses for another reason says nothing of what it checks, and may go by.
      if (!verdicts.has(status)) throw awayWith(status)
      const taken = await put(right)
      const refused = `it answered ${taken.status} to the right bytes`
      if (verdicts.has(taken.status)) return { fault: refused, isProof: false }
      if (!taken.ok) throw awayWith(taken.status)
      return await this.has(object, wanted)
        ? { fault: null, isProof: true }
        : { fault: 'it doesn’t say the SHA-256 of what it has (x-amz-checksum-sha256)', isProof: false }
    } finally {
      // What is known by now counts, whether or not it can be removed; the name is no file's.
      await this.remove(object).catch(() => {})
    }
  }

  async #presigned (
    method: string, object: string, headers: Record<string, string>, { from, until }: UrlSpan,
    query: Record<string, string> = {}, endpoint = this.#place.publicEndpoint
  ): Promise<string> {
    const url = this.#urlOf(endpoint, object, query)
    return presign({ method, url, headers, at: from }, await this.#key(), Math.ceil((until - from) / 1000)).href
  }

  async #ask (
    method: string, object: string | null, headers: Record<string, string> = {}, query: Record<string, string> = {}
  ): Promise<StoreAnswer> {
    const url = this.#urlOf(this.#place.endpoint, object, query)
    // Sent as it is signed: + is no space there.
    url.search = url.search.replaceAll('+', '%20')
    const signed = signHeaders({ method, url, headers, at: Date.now() }, await this.#key())
    return await answerOf(url.href, { method, headers: signed })
  }

  /** @param object null: the bucket itself */
  #urlOf (endpoint: string, object: string | null, query: Record<string, string>): URL {
    const { bucket, prefix, isPathStyle } = this.#place
    const url = new URL(endpoint)
    if (!isPathStyle) url.host = `${bucket}.${url.host}`
    url.pathname = `${isPathStyle ? `/${bucket}` : ''}/${object === null ? '' : prefix + object}`
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return url
  }

  /** Each part may be in a file, which rotates. */
  async #key (): Promise<RequestKey> {
    const { accessKey, secret, region } = this.#place
    return {
      accessKey: await textOf('AWS_ACCESS_KEY_ID', accessKey),
      secret: await textOf('AWS_SECRET_ACCESS_KEY', secret),
      region
    }
  }
}

/** @param value the text, or @ and the path of a file with it @throws {Unavailable} */
async function textOf (setting: string, value: string): Promise<string> {
  if (!value.startsWith('@')) return value
  const path = value.slice(1)
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    throw new Unavailable(`${setting}: the file ${path} can’t be read: ${(error as NodeJS.ErrnoException).code}`)
  }
}

/** What a trial found, and until when that counts, in this process's monotonic milliseconds. */
interface Trial { fault: string | null, endsAt: number }

interface StoreAnswer { ok: boolean, status: number, headers: Headers, text: string }

async function answerOf (url: string, init: RequestInit): Promise<StoreAnswer> {
  try {
    const answer = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(patience) })
    const { ok, status, headers } = answer
    return { ok, status, headers, text: await answer.text() }
  } catch (error) {
    throw new Unavailable(`the store of files doesn’t answer: ${String((error as Error).cause ?? error)}`)
  }
}

function awayWith (status: number): Unavailable {
  return new Unavailable(`the store of files answered ${status}`)
}

/** The text of an element without others in it; empty if there is none. Keys have no character that XML would code. */
function elementOf (xml: string, name: string): string {
  return new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? ''
}
