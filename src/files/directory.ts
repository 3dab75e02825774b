import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { link, mkdir, open, readFile, readdir, rename, rm, stat, statfs, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Problem, Unavailable, invalid } from '../core/errors.ts'
import type { FileWords } from '../store/files.ts'
import { placeOf } from './objects.ts'
import type { ObjectStore, SignedRequest, UrlSpan, Wanted } from './objects.ts'
import { UrlSigner } from './url-signer.ts'

/** What stays free of the disk, whatever is uploaded: a share of it, and bytes. */
export interface Spare { share: number, bytes: number }
const standardSpare: Spare = { share: 0.1, bytes: 2 ** 30 }

/** How old a temporary file is that no upload writes any more (ms). */
const abandoned = 86_400_000

/** How often it is asked whether what is being sent still has its record (ms), and after how many bytes for room. */
const askedEvery = { record: 5000, room: 4 * 2 ** 20 } as const

/** How much later than it says a URL ends here (ms): Redis's clock says when it was made, and this one when it ends. */
const skew = 300_000

/** How often one object may be sent at once: a client may try again before its first attempt is known to be over. */
const mostSenders = 2

/** What the directory itself is: its name in Redis, and the secret of its URLs. */
interface DirectoryIdentity { id: string, secret: string }

/** What is being sent: how many bytes are still to come, and whether it no longer counts. */
interface Coming { left: number, isOver: boolean }

const full: readonly unknown[] = ['ENOSPC', 'EDQUOT', 'EFBIG']

/** Objects in a directory of this machine: the service itself takes and gives the bytes. */
export class DirectoryStore implements ObjectStore {
  readonly #path: string
  readonly #baseUrl: () => string
  readonly #spare: Spare
  readonly #sending = new Map<string, Set<Coming>>()
  /** How many bytes are still to come of all that is being sent. */
  #expected = 0
  #signer: UrlSigner | undefined
  #id: string | undefined

  constructor (path: string, baseUrl: () => string, spare = standardSpare) {
    this.#path = path
    this.#baseUrl = baseUrl
    this.#spare = spare
  }

  async open (mayMake = false): Promise<string> {
    const { id, secret } = await this.#orAway(async () => {
      for (const name of mayMake ? ['', 'objects', 'incoming'] : []) {
        await mkdir(join(this.#path, name), { recursive: true, mode: 0o700 })
      }
      return await this.#identity(mayMake)
    })
    this.#signer = new UrlSigner(secret)
    this.#id = id
    return id
  }

  /** That a file isn't there says nothing of it where the directory isn't. @throws {Unavailable} */
  async #stays (): Promise<void> {
    const before = this.#id
    if (await this.open() !== before) throw new Unavailable('the directory of files is another one now')
  }

  /** How much of the disk is free, and how much of that is kept free (bytes). @throws {Unavailable} */
  async room (): Promise<{ free: number, spare: number }> {
    const { bavail, blocks, bsize } = await this.#orAway(() => statfs(this.#path))
    return { free: bavail * bsize, spare: Math.max(this.#spare.bytes, this.#spare.share * blocks * bsize) }
  }

  /** @param bytes how many are to come besides what is being sent */
  async admit (bytes: number): Promise<void> {
    await this.#keepSpare(bytes + this.#expected)
  }

  async #keepSpare (bytes: number): Promise<void> {
    const { free, spare } = await this.room()
    if (free - bytes < spare) throw noRoom()
  }

  async upload (object: string, { bytes, sha256 }: Wanted, { until }: UrlSpan): Promise<SignedRequest> {
    const url = this.#url('PUT', object, { bytes: String(bytes), sha256, expires: String(until) })
    return { url, headers: { 'content-length': String(bytes) } }
  }

  async download (object: string, { name, media_type: type }: FileWords, { until }: UrlSpan): Promise<string> {
    return this.#url('GET', object, { name, ...type !== undefined && { type }, expires: String(until) })
  }

  /** @returns what was signed; undefined if it wasn't, or has ended @throws {Unavailable} */
  async verify (
    method: 'PUT' | 'GET', object: string, query: Record<string, unknown>
  ): Promise<Record<string, string> | undefined> {
    if (this.#signer === undefined) await this.open()
    return this.#signer!.verify(method, object, query, Date.now() - skew)
  }

  async has (object: string, { bytes }: Wanted): Promise<boolean> {
    // It was renamed to its name once its digest was right.
    const found = await this.#orAway(() => stat(this.#pathOf(object)).catch(unlessMissing))
    if (found === undefined) await this.#stays()
    return found?.size === bytes
  }

  async remove (object: string): Promise<void> {
    for (const one of this.#sending.get(object) ?? []) this.#end(one)
    await this.#orAway(() => rm(this.#pathOf(object), { force: true }))
  }

  async * older (than: number): AsyncIterable<string> {
    for (const file of await this.#names('incoming')) {
      const path = join(this.#path, 'incoming', file)
      const seen = await stat(path).catch(unlessMissing)
      if (seen !== undefined && seen.mtimeMs < Date.now() - abandoned) await unlink(path).catch(unlessMissing)
    }
    for (const mark of await this.#names('objects')) {
      for (const tenant of await this.#names('objects', mark)) {
        for (const name of await this.#names('objects', mark, tenant)) {
          const object = `${mark}/${tenant}/${name}`
          const seen = placeOf(object) && await stat(this.#pathOf(object)).catch(unlessMissing)
          if (seen !== undefined && seen.mtimeMs < than) yield object
        }
      }
    }
  }

  async #names (...folder: string[]): Promise<string[]> {
    return await readdir(join(this.#path, ...folder)).catch(unlessMissing) ?? []
  }

  /**
   * Takes an object's bytes: into a temporary file, which gets its name once all of them are there, right, and on the
   * disk. Doing it twice, or at once, is doing it once.
   * @param stands whether its record is still there: without it no tenant has a share for these bytes
   * @throws {Problem} they have another length or digest, the disk is full, or its record has gone
   * @throws {Unavailable}
   */
  async receive (
    object: string, wanted: Wanted, body: AsyncIterable<Buffer>, stands: () => Promise<boolean>,
    every: number = askedEvery.record
  ): Promise<void> {
    const all = this.#sending.get(object) ?? new Set()
    if (all.size === mostSenders) throw tooManySenders()
    const one: Coming = { left: wanted.bytes, isOver: false }
    this.#sending.set(object, all.add(one))
    // Expected before the disk is looked at, so that of several at once each sees the others.
    this.#expected += one.left
    // Not when bytes come: who sends none for a while would be expected for as long.
    const looking = setInterval(() => {
      // While Redis can't say, it goes on.
      stands().then(stands => { if (!stands) this.#end(one) }, () => {})
    }, every).unref()
    try {
      await this.admit(0)
      await this.#write(object, wanted, body, one)
    } finally {
      clearInterval(looking)
      this.#end(one)
      all.delete(one)
      if (all.size === 0) this.#sending.delete(object)
    }
  }

  /** Nothing more is expected of it, and what comes all the same is refused. */
  #end (one: Coming): void {
    this.#arrived(one, one.left)
    one.isOver = true
  }

  #arrived (one: Coming, length: number): void {
    const counted = Math.min(length, one.left)
    one.left -= counted
    this.#expected -= counted
  }

  async #write (
    object: string, { bytes, sha256 }: Wanted, body: AsyncIterable<Buffer>, one: Coming
  ): Promise<void> {
    await this.#stays()
    const temporary = join(this.#path, 'incoming', randomUUID())
    const file = await this.#orAway(() => open(temporary, 'wx', 0o600))
    try {
      const hash = createHash('sha256')
      let length = 0
      for await (const some of body) {
        if (one.isOver) throw new Problem('signature_invalid')
        const before = length
        length += some.length
        if (length > bytes) break
        hash.update(some)
        await this.#orAway(() => writeAll(file, some))
        this.#arrived(one, some.length)
        // Others write to this disk too.
        if (Math.floor(before / askedEvery.room) < Math.floor(length / askedEvery.room)) await this.#keepSpare(0)
      }
      if (length !== bytes) throw invalid({ pointer: '', message: `body: must have ${bytes} bytes` })
      if (hash.digest('hex') !== sha256) throw invalid({ pointer: '', message: `body: must have the SHA-256 ${sha256}` })
      await this.#orAway(() => this.#place(file, temporary, this.#pathOf(object)))
    } finally {
      await file.close()
      await rm(temporary, { force: true }).catch(() => {})
    }
  }

  /** @returns the object, open, and its length; undefined if there is none. The caller closes it. */
  async read (object: string): Promise<{ file: FileHandle, bytes: number } | undefined> {
    const found = await this.#orAway(async () => {
      const file = await open(this.#pathOf(object)).catch(unlessMissing)
      return file && { file, bytes: (await file.stat()).size }
    })
    if (found === undefined) await this.#stays()
    return found
  }

  async #place (file: FileHandle, temporary: string, path: string): Promise<void> {
    await file.sync()
    const made = await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await rename(temporary, path)
    // Only then does the name outlive a loss of power, and so do the folders that were made for it.
    const last = made === undefined ? dirname(path) : dirname(made)
    for (let at = dirname(path); at.length >= last.length; at = dirname(at)) {
      const folder = await open(at)
      await folder.sync().finally(() => folder.close())
    }
  }

  #url (method: string, object: string, query: Record<string, string>): string {
    if (this.#signer === undefined) throw new Unavailable('the directory of files was not read yet')
    return `${this.#baseUrl()}/files/${object}?${this.#signer.sign(method, object, query)}`
  }

  #pathOf (object: string): string {
    if (placeOf(object) === undefined) throw new Error('this is no name of an object')
    return join(this.#path, 'objects', object)
  }

  /** Of simultaneous starts one makes it, since a link replaces no file, and the others read it. */
  async #identity (mayMake: boolean): Promise<DirectoryIdentity> {
    const path = join(this.#path, 'store.json')
    const there = await readFile(path, 'utf8').catch(unlessMissing)
    if (there !== undefined) return identityIn(there)
    if (!mayMake) throw new UnavailableStore(`${this.#path} has no store.json: it isn’t mounted, or no store of files yet`)
    const made: DirectoryIdentity = { id: randomUUID(), secret: randomBytes(32).toString('base64url') }
    const temporary = `${path}.${made.id}`
    try {
      await writeFile(temporary, `${JSON.stringify(made)}\n`, { flag: 'wx', mode: 0o600, flush: true })
      await link(temporary, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      await rm(temporary, { force: true })
    }
    return identityIn(await readFile(path, 'utf8'))
  }

  /** What the file system refuses is no fault of ours: the disk is away, read-only or full. */
  async #orAway<T> (work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const { code, syscall } = error as NodeJS.ErrnoException
      if (full.includes(code)) throw noRoom()
      if (syscall === undefined) throw error
      throw new Unavailable(`the directory of files can’t be used: ${code}`)
    }
  }
}

/** Nothing was begun there, or it isn't mounted. */
export class UnavailableStore extends Unavailable {}

/** @throws {Unavailable} it was changed: with another secret no URL would be worth anything */
function identityIn (text: string): DirectoryIdentity {
  const { id, secret } = membersIn(text)
  if (typeof id === 'string' && /^[0-9a-f-]{36}$/.test(id) && typeof secret === 'string' && /^[\w-]{43}$/.test(secret)) {
    return { id, secret }
  }
  throw new Unavailable('the store.json of the directory of files is damaged: take the one of a backup')
}

function membersIn (json: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(json)) as Record<string, unknown>
  } catch {
    return {}
  }
}

function noRoom (): Problem {
  return new Problem('unavailable', {
    detail: 'The disk for files is full; send the file again later.', headers: { 'retry-after': '60' }
  })
}

function tooManySenders (): Problem {
  return new Problem('unavailable', {
    detail: `This file is being sent ${mostSenders} times already; send it again later.`, headers: { 'retry-after': '30' }
  })
}

function unlessMissing (error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

async function writeAll (file: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length;) at += (await file.write(bytes, at)).bytesWritten
}
