import type { Redis } from 'ioredis'
import { homeTag, tagOf } from '../core/ids.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { ScriptName } from '../redis/outcomes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { inAscii } from './asks.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { parseRecord, tagged } from './replies.ts'
import type { Replied } from './replies.ts'
import type { HandoffRecord } from '../core/model.ts'

/** How many files a tenant may have. */
const maxUploads = 10_000
/** How many handoffs one call looks at. */
const holdersAtOnce = 500
/** How many partitions one call lists, and so how many are asked at once. */
export const partitionsAtOnce = 16
/**
 * For how long a file is kept for a handoff that isn't there yet, in milliseconds. Its script runs within 2 s, or never
 * (redis/lanes.ts).
 */
const promised = 600_000

/** What a file is called, and what it has. A text of its own in Redis. */
export interface FileWords { name: string, media_type?: string | undefined }

/**
 * One making of a file: an id may be made again once its record has gone, and that is another file. `mark`: of the
 * partition that its record was written to; one that has another mark now has lost its records.
 */
export interface FileMaking { tenant: string, id: string, madeAt: number, mark: string }

type UnmarkedFile = Omit<FileMaking, 'mark'>

/** A file as Redis keeps it. Times in milliseconds. */
export interface StoredFile extends FileMaking {
  agent: string
  bytes: number
  sha256: string
  /** Throws PayloadLocked or PayloadBroken where they can't be opened here. */
  readonly words: FileWords
  /** Since when it is known to be there whole; null while it isn't. */
  wholeAt: number | null
}

/** Which store a partition has the records of, and what tells its records from others (lua/file-store.lua). */
export interface StoreMark { mark: string, id: string }

/** A file that the sweep is to look at; its record may have gone. */
export interface DueFile { tenant: string, id: string, bytes: number, file: StoredFile | null }

/** Whether a handoff was passed with the file, or its result has it. */
export type FileRole = 'input' | 'result'
const letters = { input: 'i', result: 'r' } as const

/** A handoff that has a file. */
export interface FileHolder { role: FileRole, id: string, record: HandoffRecord }

interface NewFile extends Pick<StoredFile, 'tenant' | 'id' | 'mark' | 'agent' | 'bytes' | 'sha256' | 'words'> {
  token: string
  /** How long after its making it goes if it isn't whole (ms). */
  lasts: number
  quota: number
}

/** The records of uploaded files in Redis, in their tenants' home partitions (lua/lib/files.lua): a method a script. */
export class FileRecords {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #options: { tags: readonly string[], connectionTo (tag: string): Redis | undefined }

  readonly #payloadKeys: PayloadKeys

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames,
    options: { tags: readonly string[], connectionTo (tag: string): Redis | undefined }, payloadKeys = new PayloadKeys()
  ) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#options = options
  }

  /** @returns when it was made */
  make (
    { tenant, id, mark, agent, bytes, sha256, words, token, lasts, quota }: NewFile
  ): Promise<{ outcome: Replied<'file-make'>, madeAt: number }> {
    const seal = fileSeal(this.#payloadKeys, tenant, id)
    const texts = [
      tenant, id, String(bytes), sha256, agent, seal.word('file', inAscii(JSON.stringify(words))),
      seal.token('file', token), String(lasts), String(quota), String(maxUploads), mark
    ]
    return this.#call('file-make', tenant, id, texts, ([outcome, madeAt]) =>
      ({ outcome, madeAt: Number(madeAt) }))
  }

  /** @returns null if there is none; `now` by Redis's clock */
  get (tenant: string, id: string): Promise<{ now: number, file: StoredFile } | null> {
    return this.#call('file-get', tenant, id, [], ([outcome, now, fields]) => outcome === 'not_found'
      ? null
      : { now: now as number, file: readFile(tenant, id, fields as FileFields, this.#payloadKeys) })
  }

  /**
   * A page of the partitions whose handoffs may have it, and when each is to be asked; those that were claimed last
   * come first.
   * @param by only those to be asked by then (ms)
   */
  keeping (
    { tenant, id }: UnmarkedFile, from = 0, by = Infinity
  ): Promise<Array<[tag: string, askedAt: number]>> {
    const tag = homeTag(tenant)
    return this.#lanes.call({
      script: this.#scripts['file-keeping'],
      tag,
      keys: [this.#keyNames.file(tag, tenant, id, 'keeping')],
      texts: [by === Infinity ? '+inf' : String(by), String(from), String(partitionsAtOnce)],
      decode: reply => {
        const [, ...found] = tagged(reply)
        return Array.from({ length: found.length / 2 }, (_, at) => [String(found[2 * at]), Number(found[2 * at + 1])])
      }
    })
  }

  /** @param unheld how long after its making it goes if nothing has it (ms) @returns whether it is there */
  whole ({ tenant, id, madeAt }: UnmarkedFile, unheld: number): Promise<boolean> {
    return this.#call('file-whole', tenant, id, [tenant, id, String(madeAt), String(unheld)], ([outcome]) =>
      outcome === 'whole')
  }

  /** Keeps a file for handoffs of a partition, for which `have` is to be called then. */
  claim ({ tenant, id, madeAt }: UnmarkedFile, tag: string): Promise<Replied<'file-claim'>> {
    return this.#call('file-claim', tenant, id, [tenant, id, String(madeAt), tag, String(promised)], ([outcome]) =>
      outcome)
  }

  /** Notes what a partition said. @param after when it is asked again (ms); null if no handoff there has the file */
  kept (
    { tenant, id, madeAt }: UnmarkedFile, [tag, askedAt]: [string, number], after: number | null
  ): Promise<Replied<'file-kept'>> {
    const texts = [tenant, id, String(madeAt), tag, String(askedAt), after === null ? '' : String(after)]
    return this.#call('file-kept', tenant, id, texts, ([outcome]) => outcome)
  }

  /** Forgets a file that nothing has. @param isUnfinished only if it isn't known to be whole */
  drop (
    { tenant, id, bytes, madeAt }: Pick<DueFile, 'tenant' | 'id' | 'bytes'> & { madeAt: number | null },
    isUnfinished = false
  ): Promise<Replied<'file-drop'>> {
    const texts = [tenant, id, madeAt === null ? '' : String(madeAt), String(bytes), isUnfinished ? '1' : '0']
    return this.#call('file-drop', tenant, id, texts, ([outcome]) => outcome)
  }

  /** @param count how many of each tenant */
  due (tag: string, count: number): Promise<{ now: number, due: DueFile[] }> {
    const texts = [String(count), this.#keyNames.partition(tag)]
    return this.#lanes.call({
      script: this.#scripts['file-due'],
      tag,
      keys: [this.#keyNames.files(tag)],
      texts,
      decode: reply => {
        const [, now, ...found] = tagged(reply)
        const due = (found as Array<[Buffer, Buffer, FileFields]>).map(([of, member, fields]) => {
          const [id, bytes] = String(member).split(':') as [string, string]
          const tenant = String(of)
          const file = fields[0] === null ? null : readFile(tenant, id, fields, this.#payloadKeys)
          return { tenant, id, bytes: Number(bytes), file }
        })
        return { now: now as number, due }
      }
    })
  }

  /** Notes in a handoff's partition that it has the files, before it is made or done. */
  async have (tenant: string, files: readonly string[], handoff: string, role: FileRole): Promise<void> {
    const tag = tagOf(handoff)
    await this.#lanes.call({
      script: this.#scripts['file-have'],
      tag,
      keys: [this.#keyNames.handoff(tag, memberOf(tenant, handoff))],
      texts: [files.join(' '), letters[role], String(promised)],
      decode: tagged
    })
  }

  /** A page of the handoffs of a partition that have the file. `next`: where the next page begins. */
  holders (
    tenant: string, file: string, tag: string, from = 0
  ): Promise<{ now: number, next: number | null, waited: number, holders: FileHolder[] }> {
    return this.#lanes.call({
      script: this.#scripts['file-holders'],
      tag,
      keys: [this.#keyNames.file(tag, tenant, file, 'having')],
      texts: [this.#keyNames.handoff(tag, `${tenant}:`), String(from), String(holdersAtOnce)],
      decode: reply => {
        const [, now, next, waited, ...found] = tagged(reply)
        return {
          now: now as number,
          next: next === -1 ? null : next as number,
          waited: waited as number,
          holders: (found as Array<[Buffer, Buffer, Buffer | null]>).map(([member, record, extra]) => ({
            role: String(member).startsWith('i') ? 'input' : 'result',
            id: String(member).slice(2),
            record: parseRecord(record, extra)
          }))
        }
      }
    })
  }

  /** Which store a partition has the records of; null before its first upload. */
  mark (tag: string): Promise<StoreMark | null> {
    return this.#lanes.call({
      script: this.#scripts['file-mark'],
      tag,
      keys: [this.#keyNames.ofFiles(tag, 'filestore')],
      texts: [],
      decode: markIn
    })
  }

  /** Which store the whole data set has the records of: the first partition's. */
  markOfAll (): Promise<StoreMark | null> {
    return this.mark(this.#options.tags[0]!)
  }

  /** The tenant's partition's, and before that the data set's, which become the store's if they are no other's. */
  async takeMark (tenant: string, id: string, mark: () => string): Promise<StoreMark> {
    let taken: StoreMark | null = null
    for (const tag of [this.#options.tags[0]!, homeTag(tenant)]) {
      taken = await this.#lanes.call({
        script: this.#scripts['file-store'],
        tag,
        keys: [this.#keyNames.ofFiles(tag, 'filestore')],
        texts: [id, mark()],
        decode: markIn
      })
      if (taken!.id !== id) break
    }
    return taken!
  }

  /** The stores that partitions have the records of, for `handoff doctor`: the data set's comes first. */
  async stores (): Promise<string[]> {
    const first = this.#options.tags[0]!
    const asked = [first, ...(await this.partitions()).filter(tag => tag !== first)]
    const found = await Promise.all(asked.map(async tag => await this.mark(tag)))
    return [...new Set(found.flatMap(one => one === null ? [] : [one.id]))]
  }

  /** The partitions that have files, without those that can't be asked now. */
  async partitions (): Promise<string[]> {
    const found = await Promise.all(this.#options.tags.map(async tag => {
      const key = this.#keyNames.files(tag)
      const one = await this.#options.connectionTo(tag)?.zrange(key, '0', '0').catch(() => []) ?? []
      return one.length === 0 ? [] : [tag]
    }))
    return found.flat()
  }

  #call<Name extends ScriptName, T> (
    name: Name, tenant: string, id: string, texts: string[], decode: (reply: [Replied<Name>, ...unknown[]]) => T
  ): Promise<T> {
    const tag = homeTag(tenant)
    const shares = name === 'file-make' || name === 'file-drop'
    const keeping = name === 'file-claim' || name === 'file-kept' || name === 'file-drop'
    const keys = [
      this.#keyNames.file(tag, tenant, id),
      ...name === 'file-get' ? [] : [this.#keyNames.files(tag, tenant), this.#keyNames.files(tag)],
      ...shares ? [this.#keyNames.ofFiles(tag, 'shares')] : [],
      ...keeping ? [this.#keyNames.file(tag, tenant, id, 'keeping')] : []
    ]
    return this.#lanes.call({
      script: this.#scripts[name], tag, keys, texts, decode: reply => decode(tagged<Replied<Name>>(reply))
    })
  }
}

function markIn (reply: unknown): StoreMark | null {
  const [outcome, mark, id] = tagged(reply)
  return outcome === 'store' ? { mark: String(mark), id: String(id) } : null
}

function fileSeal (payloadKeys: PayloadKeys, tenant: string, id: string): Seal {
  return new Seal(payloadKeys, { tenant, id: `file:${id}` })
}

/** As file-get.lua has them: when it was made, mark, agent, bytes, sha256, words, and since when it is whole. */
type FileFields = ReadonlyArray<Buffer | null>

function readFile (tenant: string, id: string, fields: FileFields, payloadKeys: PayloadKeys): StoredFile {
  const [made, mark, agent, bytes, sha256, words, whole] = fields.map(String) as [string, ...string[]]
  return {
    tenant,
    id,
    madeAt: Number(made),
    mark: mark!,
    agent: agent!,
    bytes: Number(bytes),
    sha256: sha256!,
    get words () {
      return JSON.parse(fileSeal(payloadKeys, tenant, id).openText('file', words!)) as FileWords
    },
    wholeAt: fields[6] === null ? null : Number(whole)
  }
}
