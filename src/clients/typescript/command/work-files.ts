import { rmSync } from 'node:fs'
import { lstat, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { download } from '../download.ts'
import type { Handoff, HandoffClient, WorkContext } from '../index.ts'
import type { Fetch } from '../settings.ts'
import { reportedFor } from '../work.ts'
import { fetchFor } from './proxy.ts'

/** The files of a handoff, for a command that works on it, and those that the command leaves for its result. */

/** `files` has those of the handoff, and `out` takes those of the result. Both are in `root`. */
export interface Folders { root: string, files: string, out: string }

/** How many files a result may have. */
const mostFiles = 50
/** How many bytes a link may have that doesn't say how many it has. */
const mostOfLink = 1024 ** 3
/** For how long a link may be silent (ms). */
const linkSilence = 60_000

const indexName = 'files.json'

/** The roots that are there. */
const roots = new Set<string>()

export async function makeFolders (): Promise<Folders> {
  // Only this user can look into it.
  const root = await mkdtemp(join(tmpdir(), 'handoff-'))
  if (roots.size === 0) process.on('exit', removeAll)
  roots.add(root)
  const [files, out] = [join(root, 'files'), join(root, 'out')]
  await Promise.all([mkdir(files), mkdir(out)])
  return { root, files, out }
}

/** What a command left in the background may still write there. */
export async function removeFolders ({ root }: Folders): Promise<void> {
  await rm(root, { recursive: true, force: true, maxRetries: 5 })
  roots.delete(root)
  if (roots.size === 0) process.off('exit', removeAll)
}

/** A second signal ends the process at once. */
function removeAll (): void {
  for (const root of roots) {
    try {
      rmSync(root, { recursive: true, force: true, maxRetries: 5 })
    } catch {}
  }
}

interface Fetching { client: HandoffClient, signal: AbortSignal, fetchesLinks: boolean }

/** A file of a handoff could not be had. */
export class FileFault extends Error {
  readonly retryable: boolean

  constructor (name: string, cause: unknown) {
    super(`file ${JSON.stringify(name)}: ${(cause as Error).message}`, { cause })
    // Only what is known not to change is no reason to try again.
    this.retryable = (cause as { retryable?: boolean }).retryable ?? true
  }
}

/** Puts the files of a handoff into a folder, with a list of them. @throws {FileFault} */
export async function fetchFiles ({ files = [] }: Handoff, folder: string, fetching: Fetching): Promise<void> {
  if (files.length === 0) return
  const fetched = []
  for (const file of files) {
    try {
      fetched.push({ ...file, path: await fetchFile(file, folder, fetching) })
    } catch (error) {
      throw new FileFault(file.name, error)
    }
  }
  await writeFile(join(folder, indexName), JSON.stringify(fetched))
}

/** @returns its path; null for a link that isn't fetched */
async function fetchFile (
  { name, uri, bytes, sha256 }: NonNullable<Handoff['files']>[number], folder: string,
  { client, signal, fetchesLinks }: Fetching
): Promise<string | null> {
  const isLink = !uri.startsWith('handoff-file:')
  if (isLink && !fetchesLinks) return null
  const path = await freePath(folder, name)
  const limits = { signal, retryFor: reportedFor }
  if (!isLink) await client.files.get(uri, path, limits)
  else {
    if (!uri.startsWith('https://')) throw unchanging('it is no https link')
    const wanted = { url: uri, path, bytes, sha256, most: bytes ?? mostOfLink, isLink }
    await download({ fetch: fetchLink, retryFor: reportedFor }, wanted, { ...limits, silence: linkSilence })
  }
  return path
}

/** The service lets no other names in. But what is written here must be in the folder, whatever the service says. */
async function freePath (folder: string, name: string): Promise<string> {
  if (name === '' || name === '.' || name === '..' || /[/\\\p{Cc}]/u.test(name)) throw unchanging('it is no name')
  const path = join(folder, name)
  // Some disks take names for the same that differ in case or in accents.
  const isFree = name.toLowerCase() !== indexName && await lstat(path).then(() => false, () => true)
  return isFree ? path : join(await mkdtemp(join(folder, 'other-')), name)
}

function unchanging (why: string): Error {
  return Object.assign(new Error(why), { retryable: false })
}

/** Without a key, and through the proxy that is for this link. */
const fetchLink: Fetch = (url, init) => (fetchFor(url) ?? globalThis.fetch)(url, init)

/** Sends the files that a command left with its result: no folders, and nothing that leads elsewhere. */
export async function attachFiles (folder: string, attach: WorkContext['attach']): Promise<void> {
  const names = (await readdir(folder, { withFileTypes: true })).filter(one => one.isFile()).map(({ name }) => name)
  if (names.length > mostFiles) {
    throw new Error(`the command left ${names.length} files in HANDOFF_OUT; a result has at most ${mostFiles}`)
  }
  for (const name of names.sort()) {
    await attach(join(folder, name)).catch((cause: unknown) => {
      throw new Error(`file ${JSON.stringify(name)} in HANDOFF_OUT: ${(cause as Error).message}`, { cause })
    })
  }
}
