import { Unavailable } from '../core/errors.ts'
import { Shared } from '../core/shared.ts'
import { onlineReplicas, readInfo, testedServers, unsupported, versionOf } from '../redis/connect.ts'
import type { ConnectionLog, ServerInfo } from '../redis/connect.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Master, Masters } from '../redis/masters.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import type { RightsCheck } from './rights.ts'

/**
 * How long the mark of a data set stays if it isn't written again, in milliseconds: 30 days. Replicas that remember the
 * mark write it every 5 s.
 */
const markDuration = 2_592_000_000
/** How long it is known that a data set was replaced, in milliseconds: an hour. */
const replacedKnown = 3_600_000

/** Why a master refuses writes, by how its error messages begin. */
const refusals = { READONLY: 'readonly', MISCONF: 'not_saved', NOREPLICAS: 'too_few_replicas' } as const

/** Full: it refuses what makes it larger, as pass does. Otherwise it refuses all writes. */
type Refusal = 'full' | typeof refusals[keyof typeof refusals]
export const allRefusals: readonly Refusal[] = ['full', ...Object.values(refusals)]

/**
 * The meaning of Redis's error messages for an operator. The page needs no key, so it doesn't show the messages.
 */
const meanings: Array<[start: string, meaning: string]> = [
  ['READONLY', 'Redis is a replica and takes no writes.'],
  ['MISCONF', 'Redis takes no writes because it cannot save them; its own log says why.'],
  ['NOREPLICAS', 'Redis takes no writes because it has too few replicas.'],
  ['NOPERM', 'Redis does not give this service the rights that it needs.'],
  ['ERR The user executing the script', 'Redis does not give this service the rights that it needs.'],
  ['ERR ACL failure', 'Redis does not give this service the rights that it needs.'],
  ['NOAUTH', 'Redis wants a password; set it in REDIS_URL.'],
  ['WRONGPASS', 'Redis refuses the user and password of REDIS_URL.'],
  ['max number of clients', 'Redis has as many clients as its maxclients allows; raise it, or close other clients.'],
  ['DENIED', 'Redis is in protected mode, and lets in clients of its own machine only; give it a password or an ACL.'],
  ['LOADING', 'Redis is still loading its data.'],
  ['MASTERDOWN', 'Redis is a replica that has lost its master.'],
  ['MOVED', 'Redis is one node of a Cluster; say so in REDIS_URL: redis+cluster://…'],
  ['CLUSTERDOWN', 'Redis Cluster is down: some of its slots have no master.'],
]

/** Node's and OpenSSL's error codes for a certificate that isn't trusted. */
const untrusted = /CERT|VERIFY_LEAF/

/** Why there is no connection, for an operator. */
export function whyUnreached (trouble: Error | undefined): string {
  const { message = '', code = '' }: Partial<NodeJS.ErrnoException> = trouble ?? {}
  if (untrusted.test(code)) {
    return 'Redis’s certificate is not trusted; NODE_EXTRA_CA_CERTS names the file of who signed it.'
  }
  return meanings.find(([start]) => message.includes(start))?.[1] ?? 'Redis is not connected.'
}

interface Readiness {
  masters: Masters
  lanes: Lanes
  scripts: Scripts
  rights: RightsCheck
  keyNames: KeyNames
  /** The mark that this replica gives to a data set that has none. */
  newMark (): string
  /** The mark that this replica has seen in a partition before. */
  markOf (tag: string): string | undefined
  /** How many replicas of Redis every write needs. */
  replicas: number
}

/** The result of a check of Redis. Redis's own messages are only for the log: /readyz needs no key. */
interface ReadinessVerdict {
  /** Why Redis can't serve, as a sentence for an operator; null if it can. */
  reason: string | null
  said?: string
  /** A check without an answer. It doesn't make the service unready: no answer isn't a refusal. */
  doubt?: { reason: string, said?: string }
  /** Of each master that is connected and has partitions. */
  looks: readonly Look[]
}

/** The finds at one master. */
export interface Look extends Omit<ReadinessVerdict, 'looks'> {
  /** Its name in metrics. */
  master: string
  /** Whether it may drop acknowledged handoffs. */
  unsafe?: boolean
  /** A full master still serves: caught handoffs can be done, which frees memory. So its reason is null. */
  refuses?: Refusal
  /** The mark of the data set that it has, and in which partition; left out if that wasn't seen. */
  mark?: { tag: string, value: string, isNew: boolean }
  /** How long ago a replica noticed that the data set was gone, or another one, in milliseconds; within an hour. */
  replacedAgo?: number
  /** In bytes, where it reports that. */
  memory?: { used: number, limit: number }
}

/**
 * Can Redis serve now? One of a Cluster's masters is enough, since an unready service gets no requests at all. But no
 * master may be configured so that it drops acknowledged data.
 */
export async function lookAtRedis (readiness: Readiness): Promise<ReadinessVerdict> {
  const all = [...readiness.masters.all()]
  const looks = await Promise.all(all.filter(isReached).map(master => look(master, readiness)))
  const unreached: Pick<ReadinessVerdict, 'reason' | 'said' | 'doubt'> = {
    reason: whyUnreached(all.find(master => !isReached(master))?.trouble ?? readiness.masters.trouble)
  }
  const {
    reason, said, doubt
  } = looks.find(({ unsafe }) => unsafe) ?? looks.find(({ reason }) => reason === null) ?? looks[0] ?? unreached
  return { reason, ...said !== undefined && { said }, ...doubt !== undefined && { doubt }, looks }
}

/** A master that is only taking over slots has no partition yet. */
function isReached ({ calls, tags }: Master): boolean {
  return calls.status === 'ready' && tags.length > 0
}

async function look (master: Master, readiness: Readiness): Promise<Look> {
  const tried = tryScripts(master, readiness).catch((error: Error) => error)
  const info = await master.calls.info('server', 'memory', 'replication')
    // Before 7.0, INFO takes at most one section. Ask without any, to learn that the server is so old.
    .catch(() => master.calls.info()).then(readInfo, () => ({} as ServerInfo))
  const seen = {
    master: master.name,
    ...info.maxmemory !== undefined && { memory: { used: Number(info.used_memory), limit: Number(info.maxmemory) } }
  }
  const unsafe = unsafeSetting(info)
  if (unsafe !== null) return { ...seen, reason: unsafe, unsafe: true }
  const online = onlineReplicas(info)
  if (online !== undefined && online < readiness.replicas) {
    return {
      ...seen,
      reason: `Redis has ${online} replicas online; DURABILITY needs ${readiness.replicas}.`,
      refuses: 'too_few_replicas'
    }
  }
  const outcome = await tried
  if (!(outcome instanceof Error)) return { ...seen, ...outcome }
  const [, refuses] = Object.entries(refusals).find(([start]) => outcome.message.startsWith(start)) ?? []
  return { ...seen, reason: meaningOf(outcome, info), said: outcome.message, ...refuses !== undefined && { refuses } }
}

/**
 * Writes as pass does: that shows a replica that takes no writes, a disk that can't save, and a full Redis. Missing
 * rights of other scripts show before.
 */
async function tryScripts (
  master: Master, { lanes, scripts, rights, keyNames, newMark, markOf }: Readiness
): Promise<Omit<Look, 'master' | 'memory'>> {
  const tag = master.tags[0]!
  const { lacking, missing, unknown, messages: said } = await rights.read(master)
  if (lacking.length > 0) {
    return { reason: `Redis does not let this service run ${lacking.join(', ')}: its user needs more rights.` }
  }
  if (missing.length > 0) {
    return { reason: `Redis does not have ${missing.join(', ')}, which the service needs: ${ofAnotherVersion}`, said }
  }
  const made = newMark()
  const [outcome, mark, replaced, now] = await lanes.call({
    script: scripts.probe,
    tag,
    keys: [keyNames.dataSet(tag), keyNames.dataSetReplaced(tag)],
    texts: [made, String(markDuration), markOf(tag) ?? '', String(replacedKnown)],
    decode: reply => reply as [outcome: Buffer, mark: Buffer | null, replaced: Buffer | null, now: Buffer]
  })
  return {
    reason: null,
    ...String(outcome) === 'no_room' && { refuses: 'full' },
    ...mark !== null && { mark: { tag, value: String(mark), isNew: String(mark) === made } },
    ...replaced !== null && { replacedAgo: Number(now) - Number(replaced) },
    ...unknown.length > 0 &&
      { doubt: { reason: `Redis can’t be asked whether it lets this service run ${unknown.join(', ')}.`, said } },
  }
}

const ofAnotherVersion = `tested are ${testedServers.join(', ')}. Its own words are in the service’s log.`

function meaningOf (error: Error, info: ServerInfo): string {
  const meaning = meanings.find(([start]) => error.message.startsWith(start))?.[1]
  if (meaning !== undefined) return meaning
  if (error instanceof Unavailable && !unsupported.test(error.message)) return 'Redis does not answer in time.'
  return `${versionOf(info)?.name ?? 'Redis'} does not run our scripts; ${ofAnotherVersion}`
}

/** Of all masters together, in bytes. A limit of 0: one of them at least has none. */
export interface Memory { used: number, limit: number }

/** Null if a server doesn't report it. */
export async function memoryOf (masters: Masters): Promise<Memory | null> {
  const all = [...masters.all()].filter(({ tags }) => tags.length > 0)
  const infos = await Promise.all(all.map(({ calls }) => calls.info('memory').then(readInfo, (): ServerInfo => ({}))))
  const numbers = infos.map(({ used_memory: used, maxmemory }) => ({ used: Number(used), limit: Number(maxmemory) }))
  const sum = (of: keyof Memory) => numbers.reduce((total, one) => total + one[of], 0)
  // NaN if a master's figure is missing.
  if (Number.isNaN(sum('used') + sum('limit'))) return null
  return { used: sum('used'), limit: numbers.some(({ limit }) => limit === 0) ? 0 : sum('limit') }
}

/** Why nothing should be stored on this server, from its INFO; null if it is safe. */
function unsafeSetting (info: ServerInfo): string | null {
  const version = versionOf(info)
  if (version?.tooOld) return `${version.name} is too old: 7.0 or later is needed.`
  const policy = info.maxmemory_policy
  if (policy !== undefined && policy !== 'noeviction') {
    return `maxmemory-policy is ${policy}: Redis may drop handoffs that were acknowledged. Set it to noeviction.`
  }
  return null
}

/**
 * For how long a master must be well before the log says that it is, in milliseconds. At the limit a Redis is full and
 * has room by turns, with each handoff that is passed and done, and that is one event.
 */
const quiet = 15_000

/** A master's trouble, as logged. */
interface LoggedTrouble { reason: string, refuses: Refusal | undefined, lastSeen: number }

/** The log's words for a full Redis. */
export const whyFull = 'Redis is full: it has used maxmemory. What makes it larger is answered 503, pass above all; ' +
  'done and cancel make room. ' +
  'Raise maxmemory, or see that handoffs are done or cancelled.'

type CheckLog = ConnectionLog & { error (details: object, message: string): void }

/**
 * Checks of Redis, one at a time. The log has each trouble once when it begins and once when it is over.
 */
export class Checks {
  readonly #look: () => Promise<ReadinessVerdict>
  readonly #log: CheckLog
  readonly #quiet: number
  readonly #logged = new Map<string, LoggedTrouble>()
  readonly #checks = new Shared<string | null>()
  #last: string | null | undefined
  #lastDoubt: string | undefined
  #looks: readonly Look[] = []
  /**
   * The known marks of the data set, by partition. They stay the same over restarts, failovers and moved slots.
   */
  readonly #marks = new Map<string, string>()
  /** How often a mark was gone, or another one. */
  replaced = 0

  /** @param quietFor tests have a shorter one */
  constructor (look: () => Promise<ReadinessVerdict>, log: CheckLog, quietFor = quiet) {
    this.#look = look
    this.#log = log
    this.#quiet = quietFor
  }

  /**
   * Why Redis can't serve; null if it can. A probe during a check gets its result, so any number of probes cost
   * Redis one check at a time.
   */
  whyNotReady (): Promise<string | null> {
    return this.#checks.get('', () => this.#check())
  }

  /** Could it serve at the last check? Undefined before the first one. */
  get ready (): boolean | undefined {
    return this.#last === undefined ? undefined : this.#last === null
  }

  /**
   * Did no master take a pass at the last check, and one at least only because it is full? Pass is 503 then, while done
   * and cancel go on there.
   */
  get isFull (): boolean {
    const isFull = ({ refuses }: Look) => refuses === 'full'
    return this.#looks.some(isFull) && this.#looks.every(look => isFull(look) || look.reason !== null)
  }

  /** The mark that was seen in a partition, if it was. */
  markOf (tag: string): string | undefined {
    return this.#marks.get(tag)
  }

  /** The last check's finds at each master. */
  get looks (): readonly Look[] {
    return this.#looks
  }

  async #check (): Promise<string | null> {
    const { reason, said, doubt, looks } = await this.#look()
    if (reason !== null && reason !== this.#last) {
      this.#log.warn({ reason, ...said !== undefined && { said } }, 'not ready')
    }
    if (reason === null && this.#last !== null) this.#log.info({}, 'ready')
    if (doubt !== undefined && doubt.reason !== this.#lastDoubt) {
      this.#log.warn(doubt, 'some checks of Redis could not be made')
    }
    this.#last = reason
    if (reason === null) this.#lastDoubt = doubt?.reason
    this.#looks = looks
    for (const look of looks) {
      this.#logState(look, reason)
      this.#compare(look)
    }
    return reason
  }

  /**
   * A mark that is gone was made anew by the first replica that looked. So for each replica it is another one, once.
   */
  #compare ({ master, mark }: Look): void {
    if (mark === undefined) return
    const before = this.#marks.get(mark.tag)
    this.#marks.set(mark.tag, mark.value)
    if (before === undefined || before === mark.value) return
    this.replaced++
    this.#log.error({ master }, 'Redis is empty, or another one than before: handoffs and keys that it had are not ' +
      'there, and clients see 404 and 401. ' +
      'Check REDIS_URL, its data directory and who may have emptied it, and restore a backup')
  }

  /**
   * One master of a Cluster may be in trouble while the service is ready. The reason why the service isn't ready has
   * been logged as such.
   */
  #logState ({ master, reason: unready, said, refuses, memory }: Look, whole: string | null): void {
    const reason = refuses === 'full' ? whyFull : unready
    const logged = this.#logged.get(master)
    const numbers = memory !== undefined && { used_memory: memory.used, maxmemory: memory.limit }
    if (reason !== null && reason === whole) return
    if (reason !== null) {
      this.#logged.set(master, { reason, refuses, lastSeen: performance.now() })
      if (logged?.reason === reason) return
      this.#log.warn(
        { master, reason, ...said !== undefined && { said }, ...numbers },
        refuses === undefined ? 'a Redis master can’t serve' : 'Redis refuses writes'
      )
    } else if (logged !== undefined && performance.now() - logged.lastSeen >= this.#quiet) {
      this.#logged.delete(master)
      this.#log.info(
        { master, ...numbers },
        logged.refuses === undefined ? 'a Redis master serves again' : 'Redis takes writes again'
      )
    }
  }
}
