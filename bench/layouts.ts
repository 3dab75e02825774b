import { loadScripts } from '../src/redis/scripts.ts'

/** The three scripts' texts of one way to lay a handoff out in Redis. */
export interface Layout {
  pass: string
  catch: string
  done: string
  /** Has a string key for the payload, given to every script as its third. */
  beside: boolean
}

/** A text with each edit made; one that finds nothing to change is a mistake here, since lua/ has moved on. */
function edited (text: string, edits: ReadonlyArray<readonly [from: string, to: string]>): string {
  for (const [from, to] of edits) {
    if (text.split(from).length !== 2) throw new Error(`bench/layouts.ts: lua/ no longer says just once: ${from}`)
    text = text.replace(from, () => to)
  }
  return text
}

const real = loadScripts()

/** As the service has it: fields s and p of one hash. */
const inTheHash: Layout = { pass: real.pass.source, catch: real.catch.source, done: real.done.source, beside: false }

/** The same scripts but for the payload, which is a string key of the same tag with a TTL of its own. */
const besideIt: Layout = {
  pass: edited(real.pass.source, [
    ['local key, due, waiting = KEYS[1], KEYS[2], KEYS[3]', 'local key, due, waiting = KEYS[1], KEYS[2], KEYS[4]'],
    [", 'p', payload)", ")\nredis.call('SET', KEYS[3], payload, 'PXAT', ms(expires + retention))"],
  ]),
  catch: edited(real.catch.source, [
    ["local record, payload, decision = unpack(redis.call('HMGET', key, 's', 'p', 'd'))",
      "local record, decision = unpack(redis.call('HMGET', key, 's', 'd'))\nlocal payload = redis.call('GET', KEYS[3])"],
    ["redis.call('PEXPIREAT', key, ms(deadline + retention))",
      "redis.call('PEXPIREAT', key, ms(deadline + retention))\nredis.call('PEXPIREAT', KEYS[3], ms(deadline + retention))"],
  ]),
  done: edited(real.done.source, [[", 'p', result)", ", 'r', result)\nredis.call('UNLINK', KEYS[3])"]]),
  beside: true,
}

export const layouts = { 'in the hash': inTheHash, beside: besideIt }
export type LayoutName = keyof typeof layouts
export const layoutNames = Object.keys(layouts) as LayoutName[]
