import { createHash } from 'node:crypto'
import { readFiles } from '../core/files.ts'
import { derivedId, randomToken } from '../core/ids.ts'
import { BodyError, cutMembers, openBrace, pointerTo } from '../core/json.ts'
import type { Members } from '../core/json.ts'
import type { Caller } from '../core/model.ts'
import { a2aOptions } from '../core/schemas/cards.ts'
import type { A2aPass } from '../handoffs/lifecycle/option-words.ts'
import type { Card } from './card.ts'
import { A2aError, invalidParams } from './errors.ts'
import { Fields, compact, memberIn } from './fields.ts'
import { filePart, filesGiven, isFile } from './files.ts'
import { optionsUri } from './message.ts'
import type { SentMessage, MessagePart, SendRequest } from './message.ts'
import { dataPart } from './status.ts'

const optionsAt = `/metadata${pointerTo(optionsUri)}`

/** What is passed for a message: pass's body, and what stands for it where two are compared. */
interface Passing { members: Members, bytes: Buffer, a2a: A2aPass, key: string | undefined }

/** What is the same for the same message: neither the envelope counts, nor the binding, nor its configuration. */
export function digestOfMessage ({ message, metadata }: SendRequest, inbox: string, { tenant, agent }: Caller): string {
  return createHash('sha256').update(`${tenant} ${agent} ${inbox} `).update(message.text).update(' ')
    .update(metadata ?? '').digest('base64url')
}

/** @param digest of the message @throws {A2aError} */
export function passingOf ({ message, metadata }: SendRequest, card: Card, digest: string): Passing {
  const { inbox, deduplicates } = card
  const context = message.contextId ?? (deduplicates ? `ctx-${digest.slice(0, 22)}` : `ctx-${randomToken()}`)
  const body = Buffer.concat([
    Buffer.from(`{"to":"${inbox}","task":${taskOf(message)}`),
    ...member('output', outputOf(message)),
    ...member('context', passedContext(message, context)),
    ...member('files', filesOf(message)),
    ...chosenOptions(message, metadata, card).flatMap(([name, text]) => member(name, text)),
    Buffer.from('}')
  ])
  try {
    return {
      members: cutMembers(body),
      bytes: Buffer.from(digest),
      a2a: { context, parts: lettersOf(message) },
      key: deduplicates ? keyOfMessage(digest) : undefined
    }
  } catch (error) {
    throw error instanceof BodyError ? invalidParams('/message', error.message) : error
  }
}

/** No client's own Idempotency-Key has a tab. */
function keyOfMessage (digest: string): string {
  return `a2a\t${digest}`
}

/** The id that the task of this message has. */
export function idOfMessage (digest: string, inbox: string, { tenant, agent }: Caller): string {
  return derivedId(tenant, agent, false, keyOfMessage(digest), inbox)
}

function member (name: string, text: Buffer | undefined): Buffer[] {
  return text === undefined ? [] : [Buffer.from(`,"${name}":`), text]
}

function joinedText (parts: readonly MessagePart[]): string {
  return parts.filter(({ kind }) => kind === 'text').map(({ text }) => text).join('\n')
}

function taskOf ({ parts }: SentMessage): string {
  return JSON.stringify(joinedText(parts) || 'message')
}

/** Neither texts nor files. */
function othersOf ({ parts }: SentMessage): MessagePart[] {
  return parts.filter(part => part.kind !== 'text' && !isFile(part))
}

/** @throws {A2aError} there are too many */
function filesOf ({ parts }: SentMessage): Buffer | undefined {
  const files = filesGiven(parts)
  return files.length === 0 ? undefined : Buffer.from(JSON.stringify(files))
}

/** Is it what output is made of, as it came? */
function isObjectPart ({ kind, data }: MessagePart): boolean {
  return kind === 'data' && data[0] === openBrace
}

/** Which parts it has, so that they can be distinguished from what was passed: word P of lua/lib/record.lua. */
function lettersOf (message: SentMessage): string {
  const others = othersOf(message)
  const hasText = message.parts.some(({ kind }) => kind === 'text')
  const text = !hasText ? '' : joinedText(message.parts) === '' ? 'e' : 't'
  const letters = text + (others.length === 0 ? '' : others.length === 1 && isObjectPart(others[0]!) ? 'd' : 'p')
  return letters || 'f'
}

/** A single part of data is the output itself, if that is an object; others stand in a list, as they came. */
function outputOf (message: SentMessage): Buffer | undefined {
  const others = othersOf(message)
  const [only] = others
  if (only === undefined) return undefined
  return others.length === 1 && isObjectPart(only) ? only.data : partsText(others)
}

/** The message's parts again, with commas between them. @param task JSON @param letters word P @param files JSON */
export function partsOfPassed (task: Buffer, output: Buffer, letters: string, files: Buffer | undefined): Buffer {
  const text = letters.startsWith('t') ? `{"text":${task}}` : letters.startsWith('e') ? '{"text":""}' : ''
  const others = letters.endsWith('d')
    ? dataPart(output)
    : letters.endsWith('p') ? memberIn(output, 'parts')!.subarray(1, -1) : ''
  const links = readFiles(files ?? null).map(file => filePart(file))
  return Buffer.from([text, others, ...links].filter(part => part.length > 0).join(','))
}

/** `{"parts":[…]}` */
function partsText (parts: readonly MessagePart[]): Buffer {
  const list = parts.flatMap(({ whole }, at) => at === 0 ? [whole] : [commaText, whole])
  return Buffer.concat([Buffer.from('{"parts":['), ...list, Buffer.from(']}')])
}

const commaText = Buffer.from(',')

function passedContext ({ messageId, metadata, referenceTaskIds, extensions }: SentMessage, context: string): Buffer {
  return Buffer.concat([
    Buffer.from(`{"a2a":{"messageId":${JSON.stringify(messageId)},"contextId":"${context}"`),
    ...member('metadata', metadata),
    ...member('referenceTaskIds', referenceTaskIds),
    ...member('extensions', extensions),
    Buffer.from('}}')
  ])
}

/** The client's options, before them the usual ones of the inbox, and those that none changes. */
function chosenOptions (message: SentMessage, metadata: Buffer | undefined, card: Card): Array<[string, Buffer]> {
  const given = memberIn(metadata, optionsUri) ?? memberIn(message.metadata, optionsUri)
  if (given !== undefined && given[0] !== openBrace) throw invalidParams(optionsAt, 'must be an object')
  const own = given && new Fields(given, optionsAt)
  const options = new Map<string, Buffer>()
  const unknown = given && memberNames(given).find(name => !a2aOptions.includes(name))
  if (unknown !== undefined) throw invalidParams(optionsAt + pointerTo(unknown), 'unknown')
  for (const name of a2aOptions) {
    const fixed = memberIn(card.fixed, name)
    const asked = own?.raw(name)
    if (fixed !== undefined && asked !== undefined && !compact(asked).equals(compact(fixed))) {
      throw invalidParams(optionsAt + pointerTo(name), `is ${compact(fixed)} here`)
    }
    const value = fixed ?? asked ?? memberIn(card.defaults, name)
    if (value !== undefined) options.set(name, value)
  }
  return [...options]
}

/** What is wrong with an option, where the client wrote it. */
export function ofOptions (error: A2aError): A2aError {
  return placed(error, pointer => a2aOptions.includes(pointer.split('/')[1] ?? '') ? optionsAt + pointer : pointer)
}

/** What is wrong with an answer, where the client wrote it. */
export function ofAnswer (error: A2aError, { parts }: SentMessage): A2aError {
  return placed(error, pointer =>
    isData(parts) ? pointer.replace(/^\/answer/, '/message/parts/0/data') : '/message/parts')
}

/** The same error, with other pointers. */
function placed (error: A2aError, place: (pointer: string) => string): A2aError {
  const faults = error.faults.map(({ pointer, message }) => ({ pointer: place(pointer), message }))
  const [first] = faults
  return first === undefined
    ? error
    : new A2aError(error.code, `Invalid parameters: ${first.pointer} ${first.message}`, faults, error.problem)
}

function memberNames (object: Buffer): string[] {
  return Object.keys(cutMembers(object).values)
}

/** Are they one part of data, which is an object? Then an answer is that. */
function isData (parts: readonly MessagePart[]): boolean {
  return parts.length === 1 && isObjectPart(parts[0]!)
}

/** The answer to a question: the only part of data if that is an object, else the text, and whatever else there is. */
export function answerOfMessage ({ parts }: SentMessage): Buffer {
  if (isData(parts)) return parts[0]!.data
  const others = parts.filter(({ kind }) => kind !== 'text')
  const text = Buffer.from(`{"text":${JSON.stringify(joinedText(parts))}`)
  if (others.length === 0) return Buffer.concat([text, Buffer.from('}')])
  return Buffer.concat([text, commaText, partsText(others).subarray(1)])
}
