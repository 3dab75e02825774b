/**
 * Prints how many KB of what a tick sent outlive two collections of young objects, for each way to send. It runs in a process of its own
 * (test/redis/lane): tap's hooks and other tests keep objects too. Its arguments are a Redis and a prefix.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { randomToken, tags } from '../../src/core/ids.ts'
import { openStore } from '../../src/store/store.ts'
import { newPlace, untilServing } from './handoffs.ts'
import { quiet } from './redis.ts'

const [url, keyPrefix] = process.argv.slice(2) as [string, string]
const { handoffs } = openStore({ url, keyPrefix, tags, workTtl: 60_000, retention: 60_000, replicas: 0, log: quiet })
await untilServing(handoffs)
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void
const old = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')!.space_used_size

async function tick (ask: () => Promise<unknown>): Promise<void> {
  for (const asked of Array.from({ length: 64 }, ask)) await asked
}

async function growth (ask: () => Promise<unknown>): Promise<number> {
  // The first ticks move what was there before.
  for (let n = 0; n < 4; n++) {
    await tick(ask)
    collect(n === 0 ? undefined : { type: 'minor' })
  }
  const before = old()
  for (let n = 0; n < 60; n++) {
    await tick(ask)
    await new Promise(setImmediate)
    collect({ type: 'minor' })
  }
  return Math.round((old() - before) / 1024)
}

console.log(JSON.stringify({
  catches: await growth(() => handoffs.catch(newPlace(), randomToken(), 'bob')),
  statuses: await growth(() => handoffs.status(newPlace())),
}))
process.exit()
