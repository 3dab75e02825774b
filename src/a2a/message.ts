import { openBrace } from '../core/json.ts'
import { labelValuePattern } from '../core/labels.ts'
import { A2aError, invalidParams } from './errors.ts'
import { Fields, compact } from './fields.ts'
import { matchesAny } from './media.ts'

/** The extension by which clients give options of pass, in a request's metadata, or in its message's. */
export const optionsUri = 'urn:agent-handoff:a2a-options:1'

/**
 * A part of a message, read once: there may be tens of thousands, or members in one. `data` and `whole` are JSON text;
 * `filename` and `mediaType` are empty where there are none.
 */
export interface MessagePart {
  kind: 'text' | 'raw' | 'url' | 'data'
  text: string
  data: Buffer
  filename: string
  mediaType: string
  whole: Buffer
}

/** A message as a client sent it. Its texts are JSON, as they came. */
export interface SentMessage {
  messageId: string
  contextId: string | undefined
  taskId: string | undefined
  parts: MessagePart[]
  metadata: Buffer | undefined
  extensions: Buffer | undefined
  referenceTaskIds: Buffer | undefined
  /** All of it, without white space. */
  text: Buffer
}

/** A SendMessageRequest. */
export interface SendRequest {
  message: SentMessage
  metadata: Buffer | undefined
  historyLength: number | undefined
  returnImmediately: boolean
  /** The push config that it brings. */
  pushConfig: Fields | undefined
}

/** What an agent takes and gives. */
interface Modes { inputModes: readonly string[], outputModes: readonly string[] }

const contextShape = new RegExp(labelValuePattern)

export function isContext (text: string): boolean {
  return contextShape.test(text)
}

/** @throws {A2aError} */
export function readSendRequest (params: Fields, { inputModes, outputModes }: Modes): SendRequest {
  const raw = params.rawObject('message')
  if (raw === undefined) throw invalidParams('/message', 'required')
  const configuration = params.object('configuration')
  const accepted = configuration?.strings('acceptedOutputModes') ?? []
  const message = readSentMessage(raw)
  const metadata = params.rawObject('metadata')
  message.parts.forEach((part, at) => {
    const type = mediaTypeOf(part)
    if (type === undefined || matchesAny(type, inputModes)) return
    throw new A2aError('ContentTypeNotSupported', `Content type not supported: /message/parts/${at} is ${type}`)
  })
  if (accepted.length > 0 && !accepted.some(mode => matchesAny(mode, outputModes))) {
    throw new A2aError('ContentTypeNotSupported', `This agent gives ${outputModes.join(', ')}`)
  }
  return {
    message,
    metadata: metadata && compact(metadata),
    historyLength: configuration?.integer('historyLength', 0),
    returnImmediately: configuration?.boolean('returnImmediately') ?? false,
    pushConfig: configuration?.object('taskPushNotificationConfig')
  }
}

function readSentMessage (raw: Buffer): SentMessage {
  const fields = new Fields(raw, '/message')
  const messageId = fields.string('messageId')
  if (messageId === undefined || messageId === '') throw invalidParams('/message/messageId', 'required')
  const role = fields.string('role')
  if (role !== 'ROLE_USER') throw invalidParams('/message/role', 'must be ROLE_USER')
  const parts = fields.list('parts')
  if (parts.length === 0) throw invalidParams('/message/parts', 'needs one part at least')
  const contextId = fields.string('contextId') || undefined
  if (contextId !== undefined && !isContext(contextId)) {
    throw invalidParams('/message/contextId', 'must be 1 to 64 of A-Z a-z 0-9 . _ : / @ -')
  }
  fields.strings('extensions')
  fields.strings('referenceTaskIds')
  return {
    messageId,
    contextId,
    taskId: fields.string('taskId') || undefined,
    parts: parts.map((part, at) => readMessagePart(part, `/message/parts/${at}`)),
    metadata: fields.rawObject('metadata'),
    extensions: fields.raw('extensions'),
    referenceTaskIds: fields.raw('referenceTaskIds'),
    text: compact(raw)
  }
}

const partKinds = ['text', 'raw', 'url', 'data'] as const
const [noData, nullData] = ['', 'null'].map(text => Buffer.from(text)) as [Buffer, Buffer]

/** @param pointer to it @throws {A2aError} it isn't a part, or has two contents */
export function readMessagePart (whole: Buffer, pointer: string): MessagePart {
  if (whole[0] !== openBrace) throw invalidParams(pointer, 'must be an object')
  const fields = new Fields(whole, pointer)
  // Data may be null: then it is there, with that value.
  const given = partKinds.filter(kind => kind === 'data' ? fields.has(kind) : fields.raw(kind) !== undefined)
  if (given.length !== 1) throw invalidParams(pointer, 'must have one of text, raw, url and data')
  const kind = given[0]!
  fields.rawObject('metadata')
  const [filename, mediaType] = ['filename', 'mediaType'].map(name => fields.string(name) ?? '') as [string, string]
  const text = kind === 'data' ? '' : fields.string(kind)!
  if (kind === 'raw' && !/^[\w+/-]*={0,2}$/.test(text)) throw invalidParams(`${pointer}/raw`, 'must be base64')
  const data = kind === 'data' ? fields.raw(kind) ?? nullData : noData
  return { kind, text, data, filename, mediaType, whole }
}

const usualTypes: Partial<Record<MessagePart['kind'], string>> = { text: 'text/plain', data: 'application/json' }

/** Its media type; undefined where it says none, and has none by its kind. */
function mediaTypeOf ({ kind, mediaType }: MessagePart): string | undefined {
  return mediaType || usualTypes[kind]
}
