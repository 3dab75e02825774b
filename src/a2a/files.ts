import { filePatterns, longest, maxFiles, uploadIn } from '../core/files.ts'
import type { GivenFile } from '../core/files.ts'
import { invalidParams } from './errors.ts'
import type { MessagePart } from './message.ts'

/** Parts of messages and artifacts that are files: https URLs with a media type. */

const [uriShape, typeShape] = [new RegExp(filePatterns.uri), new RegExp(filePatterns.type)]

/** As pass takes it; null where the part is no file of a handoff's. */
function fileOf ({ kind, text: uri, filename, mediaType }: MessagePart): GivenFile | null {
  // A file's type has no parameters.
  const type = mediaType.split(';', 1)[0]!.trim()
  const isLink = kind === 'url' && uploadIn(uri) === null && uriShape.test(uri) && URL.canParse(uri)
  if (!isLink || uri.length > longest.uri || !typeShape.test(type) || type.length > longest.type) return null
  const name = filename || decoded(new URL(uri).pathname)
  return { name: lastOf(name), uri, media_type: type }
}

export function isFile (part: MessagePart): boolean {
  return fileOf(part) !== null
}

/** Those of a message, each with a name of its own. @throws {A2aError} there are too many */
export function filesGiven (parts: readonly MessagePart[]): GivenFile[] {
  const files = parts.map(fileOf).filter(file => file !== null)
  if (files.length > maxFiles) throw invalidParams('/message/parts', `has more than ${maxFiles} files`)
  const names = new Set<string>()
  const last = new Map<string, number>()
  return files.map(file => {
    let name = file.name
    let number = last.get(name) ?? 1
    while (names.has(name)) name = numbered(file.name, ++number)
    last.set(file.name, number)
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

/** The beginning of a text, in whole characters. Nothing behind it is looked at: the text may be long. */
function ofBytes (text: string, bytes: number): string {
  let [length, end] = [0, 0]
  for (const character of text) {
    length += Buffer.byteLength(character)
    if (length > bytes) break
    end += character.length
  }
  return text.slice(0, end)
}

/** The number comes before the ending. */
function numbered (name: string, number: number): string {
  const [, stem = '', ending = ''] = /^(.+?)(\.[^.]{1,16})?$/su.exec(name)!
  const end = `-${number}${ending}`
  return ofBytes(stem, longest.name - Buffer.byteLength(end)) + end
}

/** The JSON of a part. @param url where an upload can be fetched for now; null for its uri */
export function filePart ({ name, uri, media_type: type }: GivenFile, url: string | null = null): string {
  return JSON.stringify({ url: url ?? uri, filename: name, ...type != null && { mediaType: type } })
}
