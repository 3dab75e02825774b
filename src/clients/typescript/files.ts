import type * as api from './api.ts'
import { call, keyOf, pathOf } from './call.ts'
import type { CallOptions } from './call.ts'
import { download } from './download.ts'
import { HandoffError } from './errors.ts'
import { encode } from './json.ts'
import type { WithText } from './json.ts'
import type { Settings } from './settings.ts'
import { sha256Of, fileParts, transfer } from './transfer.ts'
import type { FileOrPath } from './types.ts'

export type FileInfo = WithText<api.GetFileAnswer>

/** An uploaded file: what `files` of a handoff take. */
export interface UploadedFile { name: string, uri: string, media_type?: string, bytes: number, sha256: string }

export interface PutOptions extends CallOptions {
  /** What it is called; by default the last part of its path, or the name of a File. Other bytes need one. */
  name?: string | undefined
  mediaType?: string | undefined
}

/** Files that are too large to pass. Their bytes go to the service's store, by URLs that need no key. */
export class Files {
  readonly #settings: Settings

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /**
   * Uploads a file, as it streams from the disk; the service holds it to its length and digest. With the same
   * `idempotencyKey` again it sends no bytes that are there.
   * @param file its path, or its bytes
   */
  async put (
    file: string | URL | Uint8Array | Blob, { name, mediaType, ...options }: PutOptions = {}
  ): Promise<UploadedFile> {
    const isPath = typeof file === 'string' || file instanceof URL
    const body = isPath
      ? await blobOf(file)
      : file instanceof Blob ? file : new Blob([file as Uint8Array<ArrayBuffer>])
    const called = name ?? (isPath ? lastPart(file) : (file as { name?: string }).name)
    if (called === undefined) throw new TypeError('bytes need a name')
    const sha256 = await sha256Of(body)
    const more = mediaType !== undefined && { media_type: mediaType }
    const given = encode({ name: called, bytes: body.size, sha256, ...more })
    const { file_id: id, uri, upload } = await call<api.MakeFileAnswer>(
      this.#settings, { method: 'POST', path: '/api/files', body: given, key: keyOf(options) }, options
    )
    const isThere = async () => (await this.info(id, options)).state === 'whole'
    if (options.idempotencyKey === undefined || !await isThere()) {
      const sent = { method: upload.method, url: upload.url, headers: upload.headers, body }
      try {
        await transfer(this.#settings, sent, options, async answer => { await answer.arrayBuffer() })
      } catch (error) {
        // A store that writes an object once says so when the answer to an earlier attempt was lost.
        if (!await isThere().catch(() => false)) throw error
      }
    }
    return { name: called, uri, ...more, bytes: body.size, sha256 }
  }

  /** What a file is, and for a while where its bytes are. @param file its id, or its `handoff-file:` URI */
  async info (file: string, options: CallOptions = {}): Promise<FileInfo> {
    return await call(this.#settings, { method: 'GET', path: pathOf('files', fileIdOf(file)) }, options)
  }

  /**
   * Downloads a file. It is at the path once all of it is there, with the right length and digest.
   * @param file its id, or its `handoff-file:` URI
   */
  async get (file: string, path: string, options: CallOptions = {}): Promise<FileInfo> {
    const info = await this.info(file, options)
    if (info.url === null) {
      throw new HandoffError('file_missing', { detail: 'Its bytes are not there yet.', retryable: false })
    }
    await download(this.#settings, { url: info.url, path, bytes: info.bytes, sha256: info.sha256 }, options)
    return info
  }

  /** Deletes a file, while no handoff has it. */
  async delete (file: string, options: CallOptions = {}): Promise<void> {
    // If an answer was lost, the retry finds none: that counts as this call's own.
    const again = ({ code }: { code: string }) => code === 'not_found' ? {} : undefined
    await call(this.#settings, { method: 'DELETE', path: pathOf('files', fileIdOf(file)), again }, options)
  }
}

/** A body whose files are what the API takes. */
type Uploaded<T> = T extends { files?: readonly FileOrPath[] | undefined }
  ? Omit<T, 'files'> & { files: ReadonlyArray<Exclude<FileOrPath, string | URL | File>> }
  : T

/**
 * Uploads those files of a body that are given by their paths, one after the other. Where the caller repeats a call, by
 * its key, each upload is the one that it was before: its key is made of that key and its place.
 */
export async function withUploads<T extends object> (
  files: Files, body: T, { idempotencyKey: key, signal, retryFor, attemptTimeout }: CallOptions
): Promise<Uploaded<T>> {
  const { files: given } = body as { files?: readonly FileOrPath[] }
  if (!Array.isArray(given)) return body as Uploaded<T>
  const digest = key === undefined ? undefined : await sha256Of(new Blob([key]))
  const sent = []
  for (const [place, file] of (given as readonly FileOrPath[]).entries()) {
    const isPath = typeof file === 'string' || file instanceof URL || file instanceof Blob
    const idempotencyKey = digest === undefined ? undefined : `file-${place}-${digest}`
    sent.push(isPath ? await files.put(file, { idempotencyKey, signal, retryFor, attemptTimeout }) : file)
  }
  return { ...body, files: sent } as unknown as Uploaded<T>
}

/** @throws with the path, which the runtime leaves out where it opens a file so */
async function blobOf (path: string | URL): Promise<Blob> {
  const { openAsBlob, promises: { stat } } = fileParts()
  if (!(await stat(path)).isFile()) throw new TypeError(`${String(path)} is no file`)
  return await openAsBlob(path)
}

/** A file's name, of its path. */
function lastPart (path: string | URL): string {
  return fileParts().basename(path instanceof URL ? decodeURIComponent(path.pathname) : path)
}

function fileIdOf (file: string): string {
  return file.replace(/^handoff-file:/, '')
}
