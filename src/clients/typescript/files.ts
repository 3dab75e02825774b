import type * as api from './api.ts'
import { call, pathOf } from './call.ts'
import type { CallOptions } from './call.ts'
import { HandoffError } from './errors.ts'
import { encode } from './json.ts'
import type { WithText } from './json.ts'
import type { Settings } from './settings.ts'
import { sha256Of, fileParts, piecesOf, transfer } from './transfer.ts'

export type FileInfo = WithText<api.GetFileAnswer>

/** An uploaded file: what `files` of a handoff take. */
export interface UploadedFile { name: string, uri: string, media_type?: string, bytes: number, sha256: string }

export interface PutOptions extends CallOptions {
  /** What it is called; by default the last part of its path. Bytes need one. */
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
   * Uploads a file, as it streams from the disk; the service holds it to its length and digest.
   * @param file its path, or its bytes
   */
  async put (
    file: string | URL | Uint8Array | Blob, { name, mediaType, ...options }: PutOptions = {}
  ): Promise<UploadedFile> {
    const isPath = typeof file === 'string' || file instanceof URL
    const body = isPath
      ? await fileParts().openAsBlob(file)
      : file instanceof Blob ? file : new Blob([file as Uint8Array<ArrayBuffer>])
    const called = name ?? (isPath ? lastPart(file) : undefined)
    if (called === undefined) throw new TypeError('bytes need a name')
    const sha256 = await sha256Of(body)
    const more = mediaType !== undefined && { media_type: mediaType }
    const given = encode({ name: called, bytes: body.size, sha256, ...more })
    const key = options.idempotencyKey ?? crypto.randomUUID()
    const { file_id: id, uri, upload } = await call<api.MakeFileAnswer>(
      this.#settings, { method: 'POST', path: '/api/files', body: given, key }, options
    )
    const sent = { method: upload.method, url: upload.url, headers: upload.headers, body }
    try {
      await transfer(this.#settings, sent, options, async answer => { await answer.arrayBuffer() })
    } catch (error) {
      // A store that writes an object once says so when the answer to an earlier attempt was lost.
      const { state } = await this.info(id, options).catch(() => ({ state: undefined }))
      if (state !== 'whole') throw error
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
    const { createHash, promises: { open, rename, rm } } = fileParts()
    const temporary = `${path}.${crypto.randomUUID()}.part`
    try {
      await transfer(this.#settings, { method: 'GET', url: info.url }, options, async answer => {
        const handle = await open(temporary, 'w')
        try {
          const hash = createHash('sha256')
          let bytes = 0
          for await (const some of piecesOf(answer.body!)) {
            hash.update(some)
            bytes += some.length
            for (let at = 0; at < some.length;) at += (await handle.write(some, at)).bytesWritten
          }
          const isRight = bytes === info.bytes && hash.digest('hex') === info.sha256
          if (!isRight) throw new Error('other bytes came than were put')
        } finally {
          await handle.close()
        }
      })
      await rename(temporary, path)
    } finally {
      await rm(temporary, { force: true })
    }
    return info
  }

  /** Deletes a file, while no handoff has it. */
  async delete (file: string, options: CallOptions = {}): Promise<void> {
    // If an answer was lost, the retry finds none: that counts as this call's own.
    const again = ({ code }: { code: string }) => code === 'not_found' ? {} : undefined
    await call(this.#settings, { method: 'DELETE', path: pathOf('files', fileIdOf(file)), again }, options)
  }
}

/** A file's name, of its path. */
function lastPart (path: string | URL): string | undefined {
  return (path instanceof URL ? decodeURIComponent(path.pathname) : path).split(/[/\\]/).at(-1)
}

function fileIdOf (file: string): string {
  return file.replace(/^handoff-file:/, '')
}
