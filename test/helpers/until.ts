import { setTimeout as sleep } from 'node:timers/promises'

/** Polls where nobody tells: resolves with what `look` gives once it is truthy. @throws when it isn't within so many milliseconds */
export async function until<T> (look: () => Promise<T> | T, within = 30_000): Promise<NonNullable<T>> {
  for (const deadline = Date.now() + within; Date.now() < deadline; await sleep(20)) {
    const seen = await look()
    if (seen) return seen
  }
  throw new Error(`not so within ${within} ms`)
}
