import slotOf from 'cluster-key-slot'
import type { Redis } from 'ioredis'
import { Unavailable } from '../core/errors.ts'
import type { Config } from '../config.ts'
import { randomId, tagOf, tags } from '../core/ids.ts'
import { findRunning } from '../embedded/server.ts'
import type { Masters } from '../redis/masters.ts'
import { KeyNames, memberOf } from '../store/key-names.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { openStore } from '../store/store.ts'
import type { Store } from '../store/store.ts'
import { Failure } from '../clients/typescript/command/output.ts'

/** The command reports a failure once, at the end, on one line. */
const silent = { info () {}, warn () {}, error () {} }

/**
 * Opens the same store as the service with these settings, runs `use`, and closes it.
 * @param replicas how many must acknowledge: the service's number, or 0 to read even while replicas are away
 * @throws {Failure} Redis can't serve, with the reason
 */
export async function withStore<T> (
  config: Config, replicas: number, use: (store: Store, url: string) => Promise<T>
): Promise<T> {
  const embedded = config.redisUrl === undefined ? await findRunning(config.dataDir) : undefined
  const url = config.redisUrl ?? embedded!.socket
  const { keyPrefix, workTtl, retention, decisionsRetention, eventsRetention, listsEnded, payloadKeys } = config
  const store = openStore({
    url,
    keyPrefix,
    tags,
    workTtl,
    retention,
    decisionsRetention,
    eventsRetention,
    listsEnded,
    replicas,
    log: silent,
    payloadKeys: new PayloadKeys(payloadKeys)
  })
  try {
    return await use(store, url)
  } catch (error) {
    throw error instanceof Unavailable ? new Failure(await reasonOf(store, error)) : error
  } finally {
    await store.close()
    await embedded?.close()
  }
}

/** Redis's clock, in milliseconds. */
export async function redisClock (store: Store): Promise<number> {
  const id = randomId()
  const tag = tagOf(id)
  // There is no such handoff. But a call waits until Redis is reached, or says why it isn't.
  await store.handoffs.status({ tenant: 'default', id, tag })
  const [seconds = 0, microseconds = 0] = await store.masters.of(tag)?.calls.time() ?? []
  return Number(seconds) * 1000 + Number(microseconds) / 1000
}

/** What it means, then in brackets what Redis or the network said. */
export async function reasonOf (store: Store, { message }: Unavailable): Promise<string> {
  const reason = await store.whyNotReady()
  const trouble: NodeJS.ErrnoException | undefined = [...store.masters.all()].find(master => master.trouble)?.trouble ??
    store.masters.trouble
  const detail = trouble?.message || trouble?.code || message
  return reason === null ? detail : `${reason} (${detail})`
}

/** Where a handoff is stored. */
export interface Whereabouts { partition: string, key: string, slot: number, master: string | null }

/** @param masters which have been asked about the handoff already, so that a Cluster's map is loaded */
export function whereabouts (masters: Masters, prefix: string, tenant: string, id: string): Whereabouts {
  const partition = tagOf(id)
  const master = masters.of(partition)
  return {
    partition,
    key: new KeyNames(prefix).handoff(partition, memberOf(tenant, id)),
    slot: slotOf(partition),
    master: master === undefined ? null : redisAddress(master.calls),
  }
}

/** The server's address: a socket's path, or host and port; with Sentinels that of the master that they announced. */
export function redisAddress (redis: Redis): string {
  const { path, host, port, sentinels } = redis.options
  if (path) return path
  const { remoteAddress, remotePort } = redis.stream ?? {}
  return sentinels ? `${remoteAddress}:${remotePort}` : `${host}:${port}`
}
