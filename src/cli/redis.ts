import type { Config } from '../config.ts'
import { findRunning } from '../embedded/running.ts'
import { tags } from '../handoff/id.ts'
import { Unavailable } from '../redis/lanes.ts'
import { openStore } from '../store/store.ts'
import type { Store } from '../store/store.ts'
import { Failure } from './failure.ts'

/** The command reports a failure once, at the end, on one line. */
const silent = { info () {}, warn () {}, error () {} }

/**
 * Opens the same store as the service with these settings, runs `use`, and closes it.
 * @param replicas how many must acknowledge: the service's number, or 0 to read even while replicas are away
 * @throws {Failure} Redis can't serve, with the reason
 */
export async function withStore<T> (config: Config, replicas: number, use: (store: Store, url: string) => Promise<T>): Promise<T> {
  const embedded = config.redisUrl === undefined ? await findRunning(config.dataDir) : undefined
  const url = config.redisUrl ?? embedded!.socket
  const { keyPrefix, workTtl, retention, eventsRetention } = config
  const store = openStore({ url, keyPrefix, tags, workTtl, retention, eventsRetention, replicas, log: silent })
  try {
    return await use(store, url)
  } catch (error) {
    throw error instanceof Unavailable ? new Failure(await reasonOf(store, error)) : error
  } finally {
    await store.close()
    await embedded?.close()
  }
}

/** What it means, then in brackets what Redis or the network said. */
export async function reasonOf (store: Store, { message }: Unavailable): Promise<string> {
  const reason = await store.whyNotReady()
  const trouble: NodeJS.ErrnoException | undefined = [...store.masters.all()].find(master => master.trouble)?.trouble ?? store.masters.trouble
  const said = trouble?.message || trouble?.code || message
  return reason === null ? said : `${reason} (${said})`
}
