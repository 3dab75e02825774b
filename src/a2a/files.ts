import { filePatterns, longest, uploadIn } from '../core/files.ts'
import type { GivenFile } from '../core/files.ts'
import { Fields } from './fields.ts'
import type { MessagePart } from './message.ts'

/** Parts of messages and artifacts that are files: https URLs with a media type. */

const [uriShape, typeShape] = [new RegExp(filePatterns.uri), new RegExp(filePatterns.type)]

/** As pass takes it; null where the part is no file of a handoff's. */
function fileOf ({ kind, text: uri, whole }: MessagePart): GivenFile | null {
  // A file's type has no parameters.
  const type = (new Fields(whole).string('mediaType') ?? '').split(';', 1)[0]!.trim()
  const isLink = kind === 'url' && uploadIn(uri) === null && uriShape.test(uri) && URL.canParse(uri)
  if (!isLink || uri.length > longest.uri || !typeShape.test(type) || type.length > longest.type) return null
  const name = new Fields(whole).string('filename') || decoded(new URL(uri).pathname)
  return { name: lastOf(name), uri, media_type: type }
}

export function isFile (part: MessagePart): boolean {
  return fileOf(part) !== null
}

/** Those of a message, each with a name of its own. */
export function filesGiven (parts: readonly MessagePart[]): GivenFile[] {
  const names = new Set<string>()
  return parts.map(fileOf).filter(file => file !== null).map(file => {
    let name = file.name
    for (let number = 2; names.has(name); number++) name = numbered(file.name, number)
    names.add(name)
    return { ...file, name }
  })
}

function decoded (path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** The last part of a path, as a file may be named. */
function lastOf (path: string): string {
  const last = path.split(/[/\\]/).at(-1)!.replace(/[\p{Cc}\p{Cs}]/gu, '')
  return last === '' || last === '.' || last === '..' ? 'file' : ofBytes(last, longest.name)
}

function ofBytes (text: string, bytes: number): string {
  const characters = [...text]
  while (Buffer.byteLength(characters.join('')) > bytes) characters.pop()
  return characters.join('')
}

/** The number comes before the ending. */
function numbered (name: string, number: number): string {
  const [, stem = '', ending = ''] = /^(.+?)(\.[^.]{1,16})?$/su.exec(name)!
  const end = `-${number}${ending}`
  return ofBytes(stem, longest.name - Buffer.byteLength(end)) + end
}

/** The JSON of a part. */
export function filePart ({ name, uri, media_type: type }: GivenFile): string {
  return JSON.stringify({ url: uri, filename: name, ...type != null && { mediaType: type } })
}
