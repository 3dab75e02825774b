import { BodyError, openBrace, openBracket, quote } from '../core/json.ts'
import { elementsIn } from '../core/nested.ts'
import { A2aError } from './errors.ts'
import { Fields, memberIn } from './fields.ts'
import { readMessagePart } from './message.ts'
import { dataPart } from './status.ts'

/**
 * The artifacts of a result, JSON texts: those that it has itself, else one that is made of it.
 * @param result JSON; null where done had none
 */
export function artifactsOf (result: Buffer | null): Buffer[] {
  if (result === null || result[0] !== openBrace || isBareObject(result)) return []
  const [artifacts, parts, text] = ['artifacts', 'parts', 'text'].map(name => memberIn(result, name))
  if (artifacts !== undefined && isValid(() => checkArtifacts(artifacts))) return elementsIn(artifacts)
  if (parts !== undefined && areParts(parts)) return [artifactWith(parts.subarray(1, -1))]
  if (text?.[0] === quote && isAlone(result, text)) return [artifactWith(Buffer.from(`{"text":${text}}`))]
  return [artifactWith(Buffer.from(dataPart(result)))]
}

function artifactWith (parts: Buffer): Buffer {
  return Buffer.concat([Buffer.from('{"artifactId":"result","parts":['), parts, Buffer.from(']}')])
}

function isBareObject (object: Buffer): boolean {
  return /^\{\s*\}$/.test(object.toString('latin1', 0, 64)) && object.length <= 64
}

/** Is the text the only member? */
function isAlone (object: Buffer, text: Buffer): boolean {
  return Object.keys(JSON.parse(object.toString()) as object).length === 1 && text.length > 0
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
