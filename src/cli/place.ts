import slotOf from 'cluster-key-slot'
import type { Redis } from 'ioredis'
import { tagOf } from '../handoff/id.ts'
import { KeyNames, memberOf } from '../store/key-names.ts'
import type { Masters } from '../redis/masters.ts'

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
    master: master === undefined ? null : addressOf(master.calls),
  }
}

/** The server's address: a socket's path, or host and port; with Sentinels that of the master that they announced. */
export function addressOf (redis: Redis): string {
  const { path, host, port, sentinels } = redis.options
  if (path) return path
  const { remoteAddress, remotePort } = redis.stream ?? {}
  return sentinels ? `${remoteAddress}:${remotePort}` : `${host}:${port}`
}
