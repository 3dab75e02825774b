import { createHash, createHmac } from 'node:crypto'

/**
 * AWS Signature Version 4, as S3 has it: each part of a path is coded once, and paths aren't normalised. By hand, since
 * it is this page, and AWS publishes what must come of it (test/files/sigv4.test.ts).
 */

export interface RequestKey { accessKey: string, secret: string, region: string }

interface RequestToSign {
  method: string
  url: URL
  /** The header fields to be signed besides `host`, in lower case. */
  headers: Record<string, string>
  /** When it is signed (ms). */
  at: number
}

/** What stands for a body that isn't signed. */
const unsignedPayload = 'UNSIGNED-PAYLOAD'

/** @param lasts seconds @returns the URL, which holds the signature: who has it may send the request */
export function presign ({ method, url, headers, at }: RequestToSign, key: RequestKey, lasts: number): URL {
  const signed = new URL(url)
  const names = signedNames(headers)
  const { date, scope } = momentOf(at, key)
  for (const [name, value] of [
    ['X-Amz-Algorithm', 'AWS4-HMAC-SHA256'], ['X-Amz-Credential', `${key.accessKey}/${scope}`], ['X-Amz-Date', date],
    ['X-Amz-Expires', String(lasts)], ['X-Amz-SignedHeaders', names.join(';')]
  ] as const) signed.searchParams.set(name, value)
  const signature = signatureOf({ method, url: signed, headers, at }, key, unsignedPayload)
  // Coded as it was signed: + isn't a space there.
  signed.search = `${canonicalQuery(signed)}&X-Amz-Signature=${signature}`
  return signed
}

/** @returns the header fields to send, with those that were given @param body its SHA-256, hex; left out for none */
export function signHeaders (
  { method, url, headers, at }: RequestToSign, key: RequestKey, body = hexOf('')
): Record<string, string> {
  const { date, scope } = momentOf(at, key)
  const all = { ...headers, 'x-amz-content-sha256': body, 'x-amz-date': date }
  const signature = signatureOf({ method, url, headers: all, at }, key, body)
  return {
    ...all,
    authorization: `AWS4-HMAC-SHA256 Credential=${key.accessKey}/${scope},SignedHeaders=${signedNames(all).join(';')},` +
      `Signature=${signature}`
  }
}

function signatureOf ({ method, url, headers, at }: RequestToSign, key: RequestKey, body: string): string {
  const { date, day, scope } = momentOf(at, key)
  const all: Record<string, string> = { ...headers, host: url.host }
  const names = signedNames(headers)
  const fields = names.map(name => `${name}:${all[name]!.trim().replace(/ +/g, ' ')}\n`).join('')
  const canonical = [method, canonicalPath(url), canonicalQuery(url), fields, names.join(';'), body].join('\n')
  const text = ['AWS4-HMAC-SHA256', date, scope, hexOf(canonical)].join('\n')
  const signing = [day, key.region, 's3', 'aws4_request'].reduce<string | Buffer>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(), `AWS4${key.secret}`
  )
  return createHmac('sha256', signing).update(text).digest('hex')
}

function signedNames (headers: Record<string, string>): string[] {
  return [...Object.keys(headers), 'host'].sort()
}

function momentOf (at: number, { region }: RequestKey): { date: string, day: string, scope: string } {
  const date = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '')
  const day = date.slice(0, 8)
  return { date, day, scope: `${day}/${region}/s3/aws4_request` }
}

/** As RFC 3986 has it: all but its unreserved characters. */
function coded (text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, one => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
}

function canonicalPath ({ pathname }: URL): string {
  return pathname.split('/').map(part => coded(decodeURIComponent(part))).join('/')
}

function canonicalQuery ({ searchParams }: URL): string {
  const pairs = [...searchParams].map(([name, value]) => [coded(name), coded(value)] as const)
  // By name, then by value: as a text `a-b=` would come before `a=`.
  const sorted = pairs.sort(([a, b], [c, d]) => a === c ? (b < d ? -1 : 1) : a < c ? -1 : 1)
  return sorted.map(pair => pair.join('=')).join('&')
}

function hexOf (text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
