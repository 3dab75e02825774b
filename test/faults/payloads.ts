import type { Random } from './random.ts'

/** The load's payloads and results: JSON text that parsing and serialising would change. */

const awkward = ['1.0', '1e400', '-0', '9007199254740993', '123456789012345678901234567890', '[]', '{}', '[[],{}]', 'null', 'true', '""',
  '"\\u0000\\ud800"', '"é 漢字 🛰"', '"\\u00e9\\/"', '{"__proto__":{"a":1},"a":1,"a":2}', '{"2":1,"1":2}', '1E-7', '"</script>"']

/**
 * A payload that no other handoff has, as catch answers it: JSON members without the braces, in the service's own format, so that it
 * can be compared as text.
 */
export function makePayload (random: Random, handoff: string): string {
  const size = random.chance(0.02) ? random.between(2_000, 20_000) : random.between(0, 200)
  const values = Array.from({ length: random.between(0, 4) }, () => random.pick(awkward))
  return `"task":"${handoff} ${'x'.repeat(size)}","output":{"of":"${handoff}","values":[${values.join(',')}]},` +
    `"context":${random.chance(0.3) ? '{}' : `{"one":${random.pick(awkward)}}`},"constraints":${random.chance(0.5) ? 'null' : `"only ${handoff}"`}`
}

/** The output of a done, by its mark: the text that status answers as `result`. */
export function resultOf (mark: string): string {
  return `{"by":"${mark}","numbers":[1.0,1e400,9007199254740993],"none":[]}`
}

/** The error of a fail, and the reason of a decline, by their marks. */
export function faultOf (mark: string): string {
  return `{"message":"by the load","code":"E1","data":{"by":"${mark}","numbers":[1.0,1e400],"none":[]}}`
}

export function reasonOf (mark: string): string {
  return JSON.stringify(mark)
}

/** The answer to a question, by its mark. */
export function givenOf (mark: string): string {
  return `{"by":"${mark}","numbers":[1.0,1e400],"none":[]}`
}
