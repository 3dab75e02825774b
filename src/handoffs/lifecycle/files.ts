import { Problem, invalid } from '../../core/errors.ts'
import type { Fault } from '../../core/errors.ts'
import { cutFiles, faultsInFiles, filesMember, keptFile, readFiles, uploadIn } from '../../core/files.ts'
import type { FilesMember, GivenFile } from '../../core/files.ts'
import type { Caller } from '../../core/model.ts'
import type { FileService, NamedFile } from '../../files/service.ts'
import type { FileRole } from '../../store/files.ts'
import type { Requester } from '../../store/requester.ts'

/** Files of a pass or a done, once they are looked up, and where their answers' readers fetch them. */

/**
 * `text`: the member to be kept; empty for no files. `uploads`: the ids of those that lie here. `problem`: why they are
 * refused, once all is checked that comes before.
 */
export interface AcceptedFiles { text: Buffer, uploads: readonly string[], problem: Error | null }

export const noFiles: AcceptedFiles = { text: Buffer.alloc(0), uploads: [], problem: null }

/** For each of a text's files where it can be fetched for now; null for a link, and for what has gone. */
type FileUrls = ReadonlyArray<{ url: string, expires_at: string } | null>

/** For how long URLs are given again to those who read the same text, of the 15 minutes that they count (ms). */
const urlsKeptFor = 60_000

/** Files of handoffs that are uploads: what is known of them, what keeps them, and where they can be fetched. */
export class HandoffFiles {
  readonly #uploads: Pick<FileService, 'find' | 'hold' | 'urlsOf'>
  /** By the text that has the files. Hundreds may wait for one result, and share its text. */
  readonly #urls = new WeakMap<Buffer, { at: number, urls: Promise<FileUrls> }>()

  constructor (uploads: Pick<FileService, 'find' | 'hold' | 'urlsOf'>) {
    this.#uploads = uploads
  }

  /** @param given what the schema has accepted @throws {Problem} they can't be files, whatever is looked up */
  async accept (caller: Caller, given: readonly GivenFile[], name: FilesMember): Promise<AcceptedFiles> {
    const wrong = faultsInFiles(given, '/files')
    if (wrong.length > 0) throw invalid(...wrong)
    const uploads = [...new Set(given.map(({ uri }) => uploadIn(uri)).filter(id => id !== null))]
    const { found, fault } = await this.#look(caller, uploads)
    const missing: string[] = []
    const differing: Fault[] = []
    const files = given.map((file, at) => {
      const id = uploadIn(file.uri)
      const upload = id === null ? undefined : found.get(id)
      if (id !== null && upload === undefined) missing.push(file.uri)
      if (upload !== undefined) differing.push(...differences(file, upload, `/files/${at}`))
      return keptFile(file, upload ?? file)
    })
    const refused = missing.length > 0 ? fileMissing(missing) : differing.length > 0 ? invalid(...differing) : null
    return { text: filesMember(name, files), uploads, problem: fault ?? refused }
  }

  /** A store that is away, or a name that is locked, must not hide what comes first: a replay, and the state. */
  async #look (
    caller: Caller, uploads: readonly string[]
  ): Promise<{ found: ReadonlyMap<string, NamedFile>, fault: Error | null }> {
    try {
      return { found: await this.#uploads.find(caller, uploads), fault: null }
    } catch (error) {
      return { found: new Map(), fault: error as Error }
    }
  }

  /** Keeps the uploads for a handoff that is about to be passed, or done. @throws {Problem} one has gone meanwhile */
  async hold (tenant: string, { uploads }: AcceptedFiles, handoff: string, role: FileRole): Promise<void> {
    if (uploads.length === 0 || await this.#uploads.hold(tenant, uploads, handoff, role)) return
    throw fileMissing(uploads.map(id => `handoff-file:${id}`))
  }

  /** The member with the URLs of a text's files, behind other members; empty for no files, and for one of many. */
  urls (
    tenant: string, name: FilesMember, text: Buffer | null, { isOneOfMany = false }: Pick<Requester, 'isOneOfMany'> = {}
  ): string | Promise<string> {
    const urls = isOneOfMany ? null : this.urlsIn(tenant, name, text)
    return urls === null ? '' : urls.then(urls => `,"${urlsMember[name]}":${JSON.stringify(urls)}`)
  }

  /** The URLs of a text's files; null for no files. */
  urlsIn (tenant: string, name: FilesMember, text: Buffer | null): Promise<FileUrls> | null {
    const files = text === null ? null : cutFiles(text, name).files
    if (files === null) return null
    const known = this.#urls.get(text!)
    if (known !== undefined && performance.now() - known.at < urlsKeptFor) return known.urls
    const made = this.#made(tenant, files)
    const urls = made.then(({ urls }) => urls)
    this.#urls.set(text!, { at: performance.now(), urls })
    // What can't be had now may be had by who asks next.
    const forget = () => this.#urls.delete(text!)
    made.then(({ lacks }) => { if (lacks) forget() }, forget)
    return urls
  }

  async #made (tenant: string, files: Buffer): Promise<{ urls: FileUrls, lacks: boolean }> {
    const ids = readFiles(files).map(({ uri }) => uploadIn(uri))
    const uploads = ids.filter(id => id !== null)
    const made = uploads.length === 0 ? [] : await this.#uploads.urlsOf(tenant, uploads)
    const urls = ids.map(id => id === null ? null : made[uploads.indexOf(id)] ?? null)
    return { urls, lacks: made.includes(null) }
  }
}

/** The member that has their URLs. */
const urlsMember = { files: 'file_urls', result_files: 'result_file_urls' } as const

function differences (file: GivenFile, upload: NamedFile, at: string): Fault[] {
  const isOther = {
    media_type: file.media_type !== upload.media_type,
    bytes: file.bytes !== upload.bytes,
    sha256: file.sha256?.toLowerCase() !== upload.sha256
  }
  return (['media_type', 'bytes', 'sha256'] as const).filter(name => file[name] != null && isOther[name])
    .map(name => ({ pointer: `${at}/${name}`, message: `differs from the upload’s, ${upload[name] ?? 'which has none'}` }))
}

function fileMissing (uris: readonly string[]): Problem {
  return new Problem('file_missing', {
    detail: `There is no upload of yours, whole, for ${JSON.stringify(uris[0]!.slice(0, 100))}; upload the file first.`
  })
}
