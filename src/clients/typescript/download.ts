import { HandoffError } from './errors.ts'
import type { Settings } from './settings.ts'
import { DiskFault, fileParts, piecesOf, transfer } from './transfer.ts'
import type { Limits } from './transfer.ts'

/** What is fetched, and where it goes. */
interface Download {
  url: string
  path: string
  /** Its length and its digest, as far as they are known. */
  bytes?: number | undefined
  sha256?: string | undefined
  /** How many bytes it may have where that isn't known. */
  most?: number | undefined
  /** Is it a link, which may lead elsewhere now? Redirects to https are followed then. */
  isLink?: boolean
}

/** Fetches a file, without a key. It is at the path once all of it is there, with the right length and digest. */
export async function download (
  settings: Pick<Settings, 'fetch' | 'retryFor'>,
  { url, path, bytes, sha256, most = bytes ?? Infinity, isLink = false }: Download, limits: Limits
): Promise<void> {
  const { createHash, dirname, join, promises: { open, rename, rm } } = fileParts()
  // Its own name may be as long as a name can be.
  const temporary = join(dirname(path), `${crypto.randomUUID()}.part`)
  const refuse = (detail: string) => new HandoffError('connection_failed', { detail, retryable: !isLink })
  try {
    await transfer(settings, { method: 'GET', url, isLink }, limits, async (answer, onBytes) => {
      const handle = await onDisk(open(temporary, 'w'))
      try {
        const hash = createHash('sha256')
        let length = 0
        for await (const some of piecesOf(answer.body!)) {
          onBytes()
          hash.update(some)
          length += some.length
          if (length > most) throw refuse(`It has more than ${most} bytes.`)
          for (let at = 0; at < some.length;) at += (await onDisk(handle.write(some, at))).bytesWritten
        }
        if (bytes !== undefined && length !== bytes) throw refuse(`It has ${length} bytes, and not ${bytes}.`)
        if (sha256 !== undefined && hash.digest('hex') !== sha256) throw refuse('It has another SHA-256.')
      } finally {
        await onDisk(handle.close())
      }
    })
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
}

/** @throws {DiskFault} */
async function onDisk<T> (work: Promise<T>): Promise<T> {
  return await work.catch((cause: unknown) => { throw new DiskFault(cause) })
}
