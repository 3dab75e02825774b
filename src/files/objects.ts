import type { FileMaking, FileWords } from '../store/files.ts'

/** What was declared of a file: what a store takes must be just that. */
export interface Wanted { bytes: number, sha256: string }

/** A request that a client may send as it stands, to a store. */
export interface SignedRequest { url: string, headers: Record<string, string> }

/** From when to when something counts (ms). */
export interface UrlSpan { from: number, until: number }

/**
 * Where the bytes are. An object is written once, whole or not at all, and its name is not used again.
 * Whatever it can't do just now is an Unavailable.
 */
export interface ObjectStore {
  /**
   * The store's name in Redis, which replicas of one service have in common; it also says whether it is there.
   * @param mayMake whether one may begin here
   */
  open (mayMake?: boolean): Promise<string>
  /** Whether an upload of so many bytes can be taken now. @throws {Unavailable} */
  admit (bytes: number): Promise<void>
  upload (object: string, wanted: Wanted, span: UrlSpan): Promise<SignedRequest>
  download (object: string, words: FileWords, span: UrlSpan): Promise<string>
  /** Whether the object is there as declared. */
  has (object: string, wanted: Wanted): Promise<boolean>
  /** Removes it, if it is there. */
  remove (object: string): Promise<void>
  /** The objects that were written before that (ms). */
  older (than: number): AsyncIterable<string>
}

/**
 * An object's name: the mark of the partition that has its record, the tenant behind `t-`, since a tenant's name may be
 * `..`, the file's id, and when it was made. So an object that is removed late is never another file's; and nobody
 * removes what another Redis has the records of.
 */
export function objectName ({ mark, tenant, id, madeAt }: FileMaking): string {
  return `${mark}/t-${tenant}/${id}.${madeAt}`
}

/** @returns the place of its record, and whose mark it has; undefined if it can't be an object's name */
export function placeOf (object: string): FileMaking | undefined {
  const [, mark, tenant, id, madeAt] =
    /^([A-Za-z0-9_-]{22})\/t-([A-Za-z0-9._-]{1,64})\/([A-Za-z0-9_-]{25})\.(\d{12,16})$/.exec(object) ?? []
  return mark === undefined ? undefined : { mark, tenant: tenant!, id: id!, madeAt: Number(madeAt) }
}

/** A header's value by which a browser saves a file, and never shows it (RFC 6266): its name in ASCII, then as is. */
export function attachment ({ name }: Pick<FileWords, 'name'>): string {
  const plain = name.replace(/[^ -~]|["\\%]/gu, '_')
  const coded = encodeURIComponent(name).replace(/['()*]/g, one => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename="${plain}"; filename*=UTF-8''${coded}`
}

/** What every file without a media type is. */
export const anyType = 'application/octet-stream'
