import { setTimeout as sleep } from 'node:timers/promises'
import { tagOf } from '../../src/core/ids.ts'
import type { TestApp } from './app.ts'
import { through } from './through.ts'
import { until } from './until.ts'
import { timeRun } from './clock.ts'

/** Passes a handoff, by default with require_human. */
export function passed ({ pass }: TestApp, more: object = {}): Promise<string> {
  return pass({ require_human: true, ...more })
}

/** How many connections are subscribed to a handoff of the tenant `default`. */
export async function subscribers ({ redis, prefix }: TestApp, id: string): Promise<number> {
  const [, count] = await redis.call('PUBSUB', 'SHARDNUMSUB', `${prefix}:{${tagOf(id)}}:h:default:${id}`) as [string, number]
  return count
}

/** Resolves when requests wait for a handoff on so many replicas; behind a balancer, with these replicas. */
export async function asleep (service: TestApp, id: string, replicas = 1): Promise<void> {
  const isWaited = (count: number) => through === undefined ? count === replicas : count > 0
  let count = 0
  await until(async () => isWaited(count = await subscribers(service, id))).catch(() => { throw new Error(`${count} replicas wait, not ${replicas}`) })
  // After subscribing they look once more, which can't be observed from outside.
  await sleep(50)
}

/** Resolves when nobody is subscribed any more. */
export async function nobody (service: TestApp, id: string): Promise<boolean> {
  return await until(async () => await subscribers(service, id) === 0)
}

/** The promise's result, and how many milliseconds it took: at least `after`, by clock.ts, and at most `within`. */
export async function timed<T> (ask: () => Promise<T>): Promise<[answer: T, after: number, within: number]> {
  const [began, start] = [timeRun(), performance.now()]
  const answer = await ask()
  return [answer, timeRun() - began, performance.now() - start]
}
