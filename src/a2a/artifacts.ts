import { cutFiles, readFiles } from '../core/files.ts'
import { BodyError, openBrace, openBracket, quote } from '../core/json.ts'
import { elementsIn } from '../core/nested.ts'
import { A2aError } from './errors.ts'
import { Fields, memberIn } from './fields.ts'
import { filePart } from './files.ts'
import { readMessagePart } from './message.ts'
import { dataPart } from './status.ts'

/**
 * The artifacts of a result, JSON texts: those that it has itself, else one that is made of it. Files are parts behind
 * what is made, or an artifact behind those that it has.
 * @param kept as Redis keeps it; null where done had none
 * @param urls where each of its files can be fetched for now; null for its uri
 */
export function artifactsOf (kept: Buffer | null, urls: ReadonlyArray<string | null> = []): Buffer[] {
  if (kept === null) return []
  const { before: result, files } = cutFiles(kept, 'result_files')
  const links = readFiles(files).map((file, at) => Buffer.from(filePart(file, urls[at])))
  const own = ownArtifacts(result)
  if (own === null) return [artifactWith('result', [...partsMadeOf(result), ...links])].filter(one => one !== null)
  const ids = new Set(own.map(artifact => new Fields(artifact).string('artifactId')))
  let id = 'result'
  while (ids.has(id)) id += '-files'
  return [...own, artifactWith(id, links)].filter(one => one !== null)
}

/** Null if it has none that are valid. A list without any is none, unless it is all that the result says. */
function ownArtifacts (result: Buffer): Buffer[] | null {
  const artifacts = result[0] === openBrace ? memberIn(result, 'artifacts') : undefined
  if (artifacts === undefined || !isValid(() => checkArtifacts(artifacts))) return null
  const own = elementsIn(artifacts)
  return own.length > 0 || isAlone(result, artifacts) ? own : null
}

function partsMadeOf (result: Buffer): Buffer[] {
  if (result[0] !== openBrace || isBareObject(result)) return []
  const [parts, text] = ['parts', 'text'].map(name => memberIn(result, name))
  if (parts !== undefined && areParts(parts)) return [parts.subarray(1, -1)]
  if (text?.[0] === quote && isAlone(result, text)) return [Buffer.from(`{"text":${text}}`)]
  return [Buffer.from(dataPart(result))]
}

/** Null without parts. */
function artifactWith (id: string, parts: readonly Buffer[]): Buffer | null {
  if (parts.length === 0) return null
  const list = parts.flatMap((part, at) => at === 0 ? [part] : [comma, part])
  return Buffer.concat([Buffer.from(`{"artifactId":"${id}","parts":[`), ...list, Buffer.from(']}')])
}

const comma = Buffer.from(',')

function isBareObject (object: Buffer): boolean {
  return /^\{\s*\}$/.test(object.toString('latin1', 0, 64)) && object.length <= 64
}

/** Is the member the only one? */
function isAlone (object: Buffer, member: Buffer): boolean {
  return Object.keys(JSON.parse(object.toString()) as object).length === 1 && member.length > 0
}

/** @param list JSON */
function areParts (list: Buffer): boolean {
  return isValid(() => checkParts(list))
}

/** Whatever isn't valid stays a part of data. */
function isValid (check: () => void): boolean {
  try {
    check()
    return true
  } catch (error) {
    if (error instanceof A2aError || error instanceof BodyError) return false
    throw error
  }
}

function checkArtifacts (list: Buffer): void {
  if (list[0] !== openBracket) throw new A2aError('InvalidParams')
  for (const element of elementsIn(list)) {
    const artifact = new Fields(element)
    for (const name of ['name', 'description']) artifact.string(name)
    artifact.rawObject('metadata')
    artifact.strings('extensions')
    const parts = artifact.raw('parts')
    if (!artifact.string('artifactId') || parts === undefined) throw new A2aError('InvalidParams')
    checkParts(parts)
  }
}

function checkParts (list: Buffer): void {
  if (list[0] !== openBracket) throw new A2aError('InvalidParams')
  const parts = elementsIn(list)
  if (parts.length === 0) throw new A2aError('InvalidParams')
  parts.forEach(part => readMessagePart(part, ''))
}
