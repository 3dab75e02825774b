import { tags } from '../../src/core/ids.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import type { TestApp } from './app.ts'
import type { Receiver } from './receiver.ts'
import { until } from './until.ts'
import { webhookSecret } from './webhooks.ts'

/** A service that sends to addresses on this machine. */
export const sendsPushes = { WEBHOOK_SECRET: webhookSecret, WEBHOOK_ALLOW: '127.0.0.0/8' }

/** Once a receiver has got so many. */
export async function untilGot (to: Receiver, count: number): Promise<void> {
  await until(async () => to.got.length >= count)
}

/** Once nothing is left to be sent. */
export async function quietCalls ({ redis, prefix }: Pick<TestApp, 'redis' | 'prefix'>): Promise<void> {
  const names = new KeyNames(prefix)
  await until(async () => (await Promise.all(tags.map(tag => redis.exists(names.callbackTenants(tag))))).every(found => found === 0))
}
