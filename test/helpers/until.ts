import { setTimeout as sleep } from 'node:timers/promises'
import { timeRun } from './clock.ts'

/** Polls where there is no event: resolves with the first truthy result of `look`. @throws if there is none within so many ms of clock.ts's time */
export async function until<T> (look: () => Promise<T> | T, within = 30_000): Promise<NonNullable<T>> {
  for (const deadline = timeRun() + within; timeRun() < deadline; await sleep(20)) {
    const seen = await look()
    if (seen) return seen
  }
  throw new Error(`not so within ${within} ms`)
}
