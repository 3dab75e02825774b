import type { FastifyReply, FastifyRequest } from 'fastify'
import { BodyError, enclosed, openBrace, openBracket, quote, skipSpace } from '../core/json.ts'
import { isPlainJson } from '../http/body.ts'
import { A2aError, rpcError } from './errors.ts'
import { Fields } from './fields.ts'

/** A JSON-RPC request. `id` as its client wrote it; undefined where that is unknown. */
interface RpcRequest { id: string | undefined, method: string, params: Fields }

const nullId = 'null'
/** How many bytes an id may have: it comes with each event of a stream. */
const maxIdBytes = 1024
const noParams = Buffer.from('{}')

/** @param known called with the id as soon as it is known @throws {A2aError} */
export function readRpc (request: FastifyRequest, known: (id: string) => void): RpcRequest {
  const bytes = (request.body ?? noParams.subarray(0, 0)) as Buffer
  if (bytes.length > 0 && !isPlainJson(request)) {
    throw new A2aError('ContentTypeNotSupported', 'JSON-RPC is application/json')
  }
  const fields = readEnvelope(bytes)
  const idText = rpcIdIn(bytes, fields)
  if (idText === undefined) throw new A2aError('InvalidRequest', 'A call needs an id: a string or a number')
  if (Buffer.byteLength(idText) > maxIdBytes) {
    throw new A2aError('InvalidRequest', `An id may have ${maxIdBytes} bytes`)
  }
  known(idText)
  const [version, method] = ['jsonrpc', 'method'].map(name => textIn(fields, name))
  if (version !== '2.0') throw new A2aError('InvalidRequest', 'jsonrpc must be "2.0"')
  if (method === undefined) throw new A2aError('InvalidRequest', 'method must be a string')
  const params = fields.raw('params') ?? noParams
  if (params[0] !== openBrace) throw new A2aError('InvalidParams', 'params must be an object')
  return { id: idText, method, params: new Fields(params) }
}

function readEnvelope (bytes: Buffer): Fields {
  if (bytes[skipSpace(bytes, 0)] === openBracket) throw new A2aError('InvalidRequest', 'Send one call at a time')
  try {
    const json = enclosed(bytes)
    const fields = new Fields(json, '', skipSpace(json, 0))
    if (fields.end !== json.length) throw new BodyError('', `not valid JSON at byte ${fields.end}`)
    return fields
  } catch (error) {
    if (!(error instanceof BodyError)) throw error
    const isOdd = error.message === 'repeated' || error.message.startsWith('nested') || isOtherJson(bytes)
    throw new A2aError(isOdd ? 'InvalidRequest' : 'JSONParse', `${error.pointer} ${error.message}`.trim())
  }
}

/** A member's string; undefined for anything else. */
function textIn (fields: Fields, name: string): string | undefined {
  return fields.raw(name)?.[0] === quote ? fields.string(name) : undefined
}

/** Is it JSON, though no object? Only short ones are looked at. */
function isOtherJson (bytes: Buffer): boolean {
  try {
    if (bytes.length >= 1024) return false
    const value: unknown = JSON.parse(bytes.toString())
    return typeof value !== 'object' || value === null
  } catch {
    return false
  }
}

/** Null is an id too. */
function rpcIdIn (bytes: Buffer, fields: Fields): string | undefined {
  const raw = fields.raw('id')
  if (raw === undefined) return fields.has('id') ? nullId : undefined
  return raw[0] === quote || /^[-\d]/.test(raw.toString('latin1', 0, 1)) ? raw.toString() : undefined
}

export function rpcResult (id: string, result: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), result, Buffer.from('}')])
}

/** @param id undefined where it isn't known */
export function rpcFailure (id: string | undefined, error: A2aError): string {
  return `{"jsonrpc":"2.0","id":${id ?? nullId},"error":${rpcError(error)}}`
}

export function sendRpc (reply: FastifyReply, text: Buffer | string): FastifyReply {
  return reply.header('content-type', 'application/json').send(text)
}
