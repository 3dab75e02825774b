import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { refusedBy } from '../../src/operations/operation.ts'
import type { Services } from '../../src/operations/operation.ts'
import { operationsOf } from '../../src/operations/table.ts'
import { readLua } from '../../src/redis/expand.ts'
import { outcomes } from '../../src/redis/outcomes.ts'
import type { ScriptName } from '../../src/redis/outcomes.ts'
import { scriptNames } from '../../src/redis/scripts.ts'
import { outcomesIn } from '../helpers/lua-header.ts'

/** src/redis/outcomes.ts is made of the scripts' headers, so a reply stands in its script alone. */

const file = new URL('../../src/redis/outcomes.ts', import.meta.url)
const command = 'OUTCOMES=write npm test -- test/lua/outcomes.test.ts'

/** A list in lines of at most 120 columns. */
function listed (name: string, words: readonly string[]): string {
  const key = /^\w+$/.test(name) ? name : `'${name}'`
  const whole = `  ${key}: [${words.map(word => `'${word}'`).join(', ')}],`
  if (whole.length <= 120) return whole
  const lines = ['   ']
  for (const word of words) {
    if (lines.at(-1)!.length + word.length + 4 > 120) lines.push('   ')
    lines[lines.length - 1] += ` '${word}',`
  }
  return [`  ${key}: [`, ...lines, '  ],'].join('\n').replace(/,\n {2}\],$/, '\n  ],')
}

t.test('the outcomes are those of the headers', async t => {
  const wanted = `/**
 * What each script may reply, in the order of its header in lua/, which describes the replies. A number alone is left
 * out. This file is made of the headers: \`${command}\`.
 */
export const outcomes = {
${scriptNames().map(name => listed(name, outcomesIn(readLua(`${name}.lua`)))).join('\n')}
} as const

/** Those that lie in lua/. */
export type ScriptName = keyof typeof outcomes
export type Outcome<Name extends ScriptName> = typeof outcomes[Name][number]
`
  if (process.env.OUTCOMES === 'write') writeFileSync(file, wanted)
  t.equal(readFileSync(file, 'utf8'), wanted, `a header has changed: ${command}`)
})

t.test('full is said of Redis alone: no reader of a reply gets that word', async t => {
  for (const script of scriptNames() as ScriptName[]) {
    const replies: readonly string[] = outcomes[script]
    if (replies.includes('full')) t.ok(readLua(`${script}.lua`).includes('--@if full\n'), script)
  }
})

t.test('what a script may refuse is among the refusals of an operation', async t => {
  const limits = { maxExpiresIn: 1, maxWorkTtl: 1 }
  const lists = operationsOf({ limits } as Services).map(({ refusals }) => refusals)
  for (const script of scriptNames() as ScriptName[]) {
    // What comes before it has happened, and isn't refused.
    const replies: readonly string[] = outcomes[script]
    const happened = replies.slice(0, replies.indexOf('not_found') + 1)
    const refused = refusedBy(script).filter(code => !happened.includes(code))
    t.ok(lists.some(list => refused.every(code => list.includes(code))), `${script}: ${refused.join()}`)
  }
})
