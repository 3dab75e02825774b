import { PayloadBroken, PayloadLocked, Problem, Unavailable, invalid } from '../core/errors.ts'
import { digestToken, homeTag, isId, operationToken, randomHomeId, randomToken, tagOf } from '../core/ids.ts'
import { iso } from '../core/iso.ts'
import type { Caller } from '../core/model.ts'
import { nameFault } from '../core/files.ts'
import type { FileAnswer, FileBody, MadeFile } from '../core/schemas/uploads.ts'
import { Shared } from '../core/shared.ts'
import { partitionsAtOnce } from '../store/files.ts'
import type { FileMaking, FileRecords, FileRole, StoreMark, StoredFile } from '../store/files.ts'
import type { Reads } from '../store/reads.ts'
import { mayHave } from './access.ts'
import { objectName } from './objects.ts'
import type { ObjectStore } from './objects.ts'
import type { StoreFaults } from './faults.ts'

/** How long URLs count (ms): an upload's, from its making on, and a download's. */
const lasts = { upload: 3_600_000, download: 900_000 } as const
/** How long after its making a file goes that nothing has (ms). */
const unheldFor = 86_400_000
/** For how long a store that was found to be the right one counts as that (ms). */
const markKnownFor = 5000

interface FileOptions { limit: number, quota: number, faults: StoreFaults, reads: Pick<Reads, 'page'> }

/** What is known of an upload that is there whole. */
export interface NamedFile { name: string, media_type: string | null, bytes: number, sha256: string }

/** Files that agents upload, and who may have them. Their bytes go past the API: by URLs of an object store. */
export class FileService {
  readonly #objects: ObjectStore | null
  readonly #records: FileRecords
  readonly #options: FileOptions
  readonly #gets = new Shared<{ now: number, file: StoredFile } | null>()
  readonly #claims = new Shared<boolean>()
  readonly #marks = new Shared<string | null>({ keptFor: markKnownFor, max: 1024 })

  /** @param objects null: there is no store */
  constructor (objects: ObjectStore | null, records: FileRecords, options: FileOptions) {
    this.#objects = objects
    this.#records = records
    this.#options = options
  }

  /** Makes room for an upload. @param body as sent: with the same key it is the same upload */
  async make (
    caller: Caller, { name, bytes, sha256: given, media_type: type }: FileBody, body: Buffer, key: string | undefined
  ): Promise<{ answer: MadeFile, replayed: boolean }> {
    const objects = this.#store()
    const fault = nameFault(name)
    if (fault !== undefined) throw invalid({ pointer: '/name', message: fault })
    if (bytes > this.#options.limit) {
      throw invalid({ pointer: '/bytes', message: `must be at most ${this.#options.limit}` })
    }
    const { tenant, agent } = caller
    const mark = await this.#takenMark(tenant)
    await objects.admit(bytes)
    const sha256 = given.toLowerCase()
    const id = key === undefined
      ? randomHomeId(tenant)
      : homeTag(tenant) + digestToken(`file ${tenant} ${agent}`, key, undefined)
    const { outcome, madeAt } = await this.#records.make({
      tenant,
      id,
      mark,
      agent,
      bytes,
      sha256,
      words: { name, ...type != null && { media_type: type } },
      token: operationToken('file', key, body),
      lasts: lasts.upload,
      quota: this.#options.quota
    })
    if (outcome === 'reused') throw new Problem('idempotency_key_reused')
    if (outcome === 'files_full') throw new Problem('files_full', { headers: { 'retry-after': '60' } })
    const span = { from: madeAt, until: madeAt + lasts.upload }
    const { url, headers } = await objects.upload(objectName({ tenant, id, madeAt, mark }), { bytes, sha256 }, span)
    const upload = { method: 'PUT' as const, url, headers, expires_at: iso(span.until) }
    return { answer: { file_id: id, uri: `handoff-file:${id}`, upload }, replayed: outcome === 'replayed' }
  }

  /** @throws {Problem} not_found, also for who may not have it */
  async get (caller: Caller, id: string): Promise<FileAnswer> {
    const objects = this.#store()
    await this.markOf(caller.tenant)
    const { now, file } = await this.#find(caller, id)
    const { words, bytes, sha256 } = file
    const isWhole = await this.isWhole(file)
    const span = { from: now, until: now + lasts.download }
    return {
      file_id: id,
      name: words.name,
      bytes,
      sha256,
      media_type: words.media_type ?? null,
      state: isWhole ? 'whole' : 'waiting',
      url: isWhole ? await objects.download(objectName(file), words, span) : null,
      url_expires_at: isWhole ? iso(span.until) : null
    }
  }

  /** @throws {Problem} not_found, file_in_use */
  async delete (caller: Caller, id: string): Promise<void> {
    const objects = this.#store()
    // Its record counts, so it can go while the store is away; not by a replica that has another one.
    await this.markOf(caller.tenant).catch(error => {
      if (error instanceof WrongStore) throw error
      unlessAway(error)
    })
    const { file } = await this.#find(caller, id)
    if (file.agent !== caller.agent) throw new Problem('not_found')
    let outcome = await this.#records.drop(file)
    if (outcome === 'in_use') {
      await this.askPartitions(file)
      outcome = await this.#records.drop(file)
    }
    if (outcome === 'in_use') throw new Problem('file_in_use')
    // The record is gone, so nothing names the object. If it stays now, the sweep finds it.
    await objects.remove(objectName(file)).catch(unlessAway)
  }

  /**
   * The uploads that a handoff of this caller's may name, by their ids. What isn't there whole is left out, and so is
   * what is neither its own nor part of what it may read; without a store, all.
   */
  async find (caller: Caller, ids: readonly string[]): Promise<ReadonlyMap<string, NamedFile>> {
    if (this.#objects === null || ids.length === 0) return new Map()
    await this.markOf(caller.tenant)
    const found = await Promise.all(ids.map(async (id): Promise<Array<[string, NamedFile]>> => {
      try {
        const { file } = await this.#find(caller, id)
        const { words: { name, media_type: type = null }, bytes, sha256 } = file
        return await this.isWhole(file) ? [[id, { name, media_type: type, bytes, sha256 }]] : []
      } catch (error) {
        if (error instanceof Problem && error.code === 'not_found') return []
        throw error
      }
    }))
    return new Map(found.flat())
  }

  /**
   * Keeps files that were found for a handoff that is about to be passed or done, in the order of lua/lib/files.lua.
   * If it is refused then, the sweep finds that after ten minutes. They need no release: when the handoff's key is
   * gone, whatever became of it, its partition says so when it is asked, every half an hour.
   * @param handoff its id, in the partition where it will be @returns whether all of them are still there
   */
  async hold (tenant: string, ids: readonly string[], handoff: string, role: FileRole): Promise<boolean> {
    const tag = tagOf(handoff)
    // Handoffs of one partition that are about to be made together share a claim, as long as it is on its way: it
    // counts from when Redis had it, for much longer than any of them takes.
    const claimed = await Promise.all(ids.map(id => this.#claims.get(`${tenant} ${id} ${tag}`, async () => {
      const found = await this.#recordOf(tenant, id)
      return found !== null && await this.#records.claim(found.file, tag) === 'claimed'
    })))
    if (!claimed.every(one => one)) return false
    if (ids.length > 0) await this.#records.have(tenant, ids, handoff, role)
    return true
  }

  /**
   * Where files of a handoff can be fetched for now, in the order of their ids: for a caller who may have them.
   * null for what has gone, and for what can't be had just now. It never throws: what was caught had better come
   * without URLs than not at all, and GET /api/files/:id has them later, or says why it hasn't.
   */
  async urlsOf (tenant: string, ids: readonly string[]): Promise<Array<{ url: string, expires_at: string } | null>> {
    const objects = this.#objects
    if (objects === null) return ids.map(() => null)
    return await Promise.all(ids.map(async id => {
      try {
        return await this.#urlOf(objects, tenant, id)
      } catch (error) {
        if (!isForeseen(error)) this.#options.faults.unforeseen(error)
        return null
      }
    }))
  }

  async #urlOf (objects: ObjectStore, tenant: string, id: string): Promise<{ url: string, expires_at: string } | null> {
    await this.markOf(tenant)
    const found = await this.#records.get(tenant, id)
    if (found === null || found.file.wholeAt === null) return null
    const span = { from: found.now, until: found.now + lasts.download }
    const url = await objects.download(objectName(found.file), found.file.words, span)
    return { url, expires_at: iso(span.until) }
  }

  /** @throws {Problem} files_off */
  requireStore (): void {
    this.#store()
  }

  /**
   * The mark of a tenant's records; null before its partition's first upload.
   * @throws {Unavailable} they are of another store than this replica's
   */
  async markOf (tenant: string): Promise<string | null> {
    return await this.#known(homeTag(tenant), async () => await this.freshMarkOf(tenant))
  }

  /** The same, asked now. */
  async freshMarkOf (tenant: string): Promise<string | null> {
    return await this.#checked(await this.#records.mark(homeTag(tenant)))
  }

  /** @throws {Unavailable} the data set has the records of another store: it has signed other URLs */
  async requireOurs (): Promise<void> {
    await this.#known('all of it', async () => await this.#checked(await this.#records.markOfAll()))
  }

  async #known (name: string, ask: () => Promise<string | null>): Promise<string | null> {
    const mark = await this.#marks.get(name, ask)
    // Another replica may take it at any time.
    if (mark === null) this.#marks.forget(name)
    return mark
  }

  /** For an upload: what belongs to no store becomes this one's. */
  async #takenMark (tenant: string): Promise<string> {
    const known = await this.markOf(tenant)
    if (known !== null) return known
    // Where Redis knows a store, a directory that has none isn't mounted: no other is to begin there.
    const mine = await this.#opened(await this.#records.markOfAll() === null)
    return await this.#checked(await this.#records.takeMark(tenant, mine, randomToken)) as string
  }

  /** @throws {WrongStore} */
  async #checked (found: StoreMark | null): Promise<string | null> {
    if (found === null) return null
    const mine = await this.#opened()
    if (found.id === mine) {
      this.#options.faults.note('store', null)
      return found.mark
    }
    const why = `Redis has the records of another store of files, ${found.id}, and this replica has ${mine}`
    this.#options.faults.note('store', why)
    throw new WrongStore(why)
  }

  async #opened (mayMake = false): Promise<string> {
    try {
      return await this.#store().open(mayMake)
    } catch (error) {
      if (error instanceof Unavailable) this.#options.faults.note('store', error.message)
      throw error
    }
  }

  /** Whether that making of a file still has its record: what has none belongs to no tenant. */
  async stands ({ tenant, id, madeAt }: FileMaking): Promise<boolean> {
    const found = await this.#records.get(tenant, id)
    return found !== null && found.file.madeAt === madeAt
  }

  /** Whether its bytes are there, as far as is known or its store says now: then that is noted. */
  async isWhole (file: StoredFile): Promise<boolean> {
    if (file.wholeAt !== null) return true
    return await this.#store().has(objectName(file), file) && await this.noteWhole(file)
  }

  /** Its bytes are there. @returns whether its record is, too */
  async noteWhole (file: FileMaking): Promise<boolean> {
    return await this.#records.whole(file, unheldFor)
  }

  /**
   * Asks partitions whether handoffs there still have the file, a few at a time, and notes what they say.
   * @param by only those whose time is by then (ms) @returns how many were
   */
  async askPartitions (file: StoredFile, by = Infinity): Promise<number> {
    const asked: Array<[tag: string, at: number]> = []
    // Listed before any is asked: what they say moves them.
    for (let from = -1; asked.length > from;) {
      from = asked.length
      asked.push(...await this.#records.keeping(file, from, by))
    }
    for (let at = 0; at < asked.length; at += partitionsAtOnce) {
      await Promise.all(asked.slice(at, at + partitionsAtOnce).map(async ([tag, time]) => {
        await this.#records.kept(file, [tag, time], await this.#isHeldIn(file, tag) ? askedAgain : null)
      }))
    }
    return asked.length
  }

  async #isHeldIn ({ tenant, id }: StoredFile, tag: string): Promise<boolean> {
    for (let from: number | null = 0; from !== null;) {
      const { holders, waited, next } = await this.#records.holders(tenant, id, tag, from)
      if (holders.length + waited > 0) return true
      from = next
    }
    return false
  }

  /** @throws {Problem} not_found */
  async #find (caller: Caller, id: string): Promise<{ now: number, file: StoredFile }> {
    const found = isId(id) && tagOf(id) === homeTag(caller.tenant) ? await this.#recordOf(caller.tenant, id) : null
    if (found === null) throw new Problem('not_found')
    if (found.file.agent === caller.agent) return found
    if (await this.#isPartOfSome(caller, found.file)) return found
    throw new Problem('not_found')
  }

  /** A batch asks for one file a hundred times. What isn't whole may be so by now, and is asked for again. */
  async #recordOf (tenant: string, id: string): Promise<{ now: number, file: StoredFile } | null> {
    const name = `${tenant} ${id}`
    const isJoined = this.#gets.known(name) !== undefined
    const found = await this.#gets.get(name, () => this.#records.get(tenant, id))
    return isJoined && found?.file.wholeAt == null ? await this.#records.get(tenant, id) : found
  }

  /** Whether the caller may have it because of a handoff: the last ones first, some partitions at a time. */
  async #isPartOfSome (caller: Caller, file: StoredFile): Promise<boolean> {
    for (let from = 0; ; from += partitionsAtOnce) {
      const tags = (await this.#records.keeping(file, from)).map(([tag]) => tag)
      const ask = () => Promise.all(tags.map(tag => this.#mayHaveBy(caller, file.id, tag)))
      // Who asks thousands for one file takes turns with other tenants' lists.
      const said = await (from === 0 ? ask() : this.#options.reads.page(caller.tenant, tags, ask))
      if (said.includes(true)) return true
      if (tags.length < partitionsAtOnce) return false
    }
  }

  async #mayHaveBy (caller: Caller, id: string, tag: string): Promise<boolean> {
    for (let from: number | null = 0; from !== null;) {
      const { holders, next, now } = await this.#records.holders(caller.tenant, id, tag, from)
      if (holders.some(holder => mayHave(caller, holder, now))) return true
      from = next
    }
    return false
  }

  #store (): ObjectStore {
    if (this.#objects === null) throw new Problem('files_off')
    return this.#objects
  }
}

/** What an operator sees elsewhere, or in the log already (store/payload-key-notes.ts). */
function isForeseen (error: unknown): boolean {
  return [Unavailable, PayloadLocked, PayloadBroken].some(kind => error instanceof kind)
}

/** This replica has another store than the one that Redis has the records of. */
class WrongStore extends Unavailable {}

/** In how many milliseconds a partition is asked again that still has handoffs with a file. */
const askedAgain = 1_800_000

/** What is away now is found later. */
export function unlessAway (error: unknown): void {
  if (!(error instanceof Unavailable)) throw error
}
