import type { Fault } from './errors.ts'
import { closeBracket } from './json.ts'

/**
 * Files of a handoff, or of its result: where each lies, and what it must be. The service fetches none that lies
 * elsewhere.
 */

/** Begins the uri of a file that was uploaded to the service; its id follows. */
const uploadScheme = 'handoff-file:'

/** What each is written with, in ECMA-262's unicode patterns. */
export const filePatterns = {
  name: '^(?!\\.{1,2}$)[^/\\\\\\p{Cc}\\p{Cs}]+$',
  uri: `^(?:https://|${uploadScheme})[!-~]+$`,
  type: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+/[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
  sha256: '^[0-9A-Fa-f]{64}$',
}

/** How many characters each may have; a name so many bytes too. */
export const longest = { name: 255, uri: 2048, type: 127 }

/** How many a handoff may have, and a result. */
export const maxFiles = 50

/** What is known of a file besides its place: JSON's, so that null means absent. */
interface AboutFile { media_type?: string | null, bytes?: number | null, sha256?: string | null }

/** A file as pass and done take it. */
export interface GivenFile extends AboutFile { name: string, uri: string }

/** The same as it is kept. */
export interface HandoffFile {
  name: string
  media_type?: string
  bytes?: number
  /** In lower case. */
  sha256?: string
  uri: string
}

/** The id of an upload, by a file's uri; null for a link. */
export function uploadIn (uri: string): string | null {
  return uri.startsWith(uploadScheme) ? uri.slice(uploadScheme.length) : null
}

/** What `filePatterns.name` and `longest.name` say, in words. @returns what is wrong with it, or undefined */
export function nameFault (name: string): string | undefined {
  if (name === '' || Buffer.byteLength(name) > longest.name) return `must have 1 to ${longest.name} bytes of UTF-8`
  if (name === '.' || name === '..') return 'must not be . or ..'
  if (/[/\\\p{Cc}]/u.test(name)) return 'must not have /, \\ or control characters'
  // Half of a surrogate pair has no UTF-8.
  return /\p{Cs}/u.test(name) ? 'must be Unicode' : undefined
}

/** What is wrong with files that their schema has accepted. @param at pointer to them */
export function faultsInFiles (files: readonly GivenFile[], at: string): Fault[] {
  const names = new Set<string>()
  const faults: Fault[] = []
  for (const [index, { name, uri }] of files.entries()) {
    const refuse = (member: string, message: string) => faults.push({ pointer: `${at}/${index}/${member}`, message })
    if (names.has(name)) refuse('name', 'repeated: each file needs a name of its own')
    if (Buffer.byteLength(name) > longest.name) refuse('name', `longer than ${longest.name} bytes`)
    if (uploadIn(uri) === null && !URL.canParse(uri)) refuse('uri', 'must be an https URL')
    names.add(name)
  }
  return faults
}

/** As it is kept: what it has, in the order that is also the digest's. */
export function keptFile ({ name, uri }: GivenFile, { media_type: type, bytes, sha256 }: AboutFile): HandoffFile {
  return {
    name,
    ...type != null && { media_type: type },
    ...bytes != null && { bytes },
    ...sha256 != null && { sha256: sha256.toLowerCase() },
    uri
  }
}

/** Where texts in Redis have files: behind the payload's last member, or behind the result. */
export type FilesMember = 'files' | 'result_files'

/** The member, to be appended to such a text. */
export function filesMember (name: FilesMember, files: readonly HandoffFile[]): Buffer {
  return Buffer.from(`,"${name}":${JSON.stringify(files)}`)
}

/**
 * Cuts the files off a text in Redis. Nothing else there ends with a bracket: a payload without files ends with its
 * constraints, a string or null, and a result is an object or null. In a string the quotes would have backslashes, and
 * no file has such a member, so the last place is the right one.
 */
export function cutFiles (text: Buffer, name: FilesMember): { before: Buffer, files: Buffer | null } {
  if (text.at(-1) !== closeBracket) return { before: text, files: null }
  const at = text.lastIndexOf(`,"${name}":[`)
  return { before: text.subarray(0, at), files: text.subarray(at + `,"${name}":`.length) }
}

export function readFiles (files: Buffer | null): HandoffFile[] {
  return files === null ? [] : JSON.parse(files.toString()) as HandoffFile[]
}
