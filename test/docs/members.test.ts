import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import type { Test } from 'tap'
import { members } from '../../src/core/members.ts'
import { readLua } from '../../src/redis/expand.ts'
import { testApp } from '../helpers/app.ts'

/**
 * What is written outside src of the members of pass, and of the scopes that calls need. MEMBERS=write npm test -- test/docs/members.test.ts
 * writes both tables anew.
 */

const rows = Object.entries(members)
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

function hasTable (t: Test, path: string, mark: string, lines: readonly string[]) {
  const page = read(path)
  const block = new RegExp(`(?<=<!-- ${mark} -->\n).*?(?=\n<!-- /${mark} -->)`, 's')
  if (process.env.MEMBERS === 'write') writeFileSync(new URL(`../../${path}`, import.meta.url), page.replace(block, () => lines.join('\n')))
  else t.equal(block.exec(page)?.[0], lines.join('\n'), 'take the actual one, or MEMBERS=write')
}

t.test('docs/api.md has the table of members', async t => {
  hasTable(t, 'docs/api.md', 'members', ['| member | | |', '|---|---|---|', ...rows.map(([name, { docs: [values, meaning] }]) => `| \`${name}\` | ${values} | ${meaning} |`)])
})

t.test('docs/keys.md has the table of calls by scope', async t => {
  const { app } = await testApp(t, { EVENTS_RETENTION: '60' })
  const calls: Record<string, string[]> = {}
  for (const [, call, scopes] of (await app.inject('/llms.txt')).body.matchAll(/^`([A-Z]+ \/api\/\S+)`, scope (.*?`)\./gm)) (calls[scopes!] ??= []).push(`\`${call}\``)
  t.ok(Object.keys(calls).length > 7)
  hasTable(t, 'docs/keys.md', 'scopes', ['| scope | calls |', '|---|---|', ...Object.entries(calls).map(([scopes, all]) => `| ${scopes} | ${all.join(', ')} |`)])
})

/** The letters of those that have words of their own. */
const letters = rows.flatMap(([name, row]) => row.kept === 'word' || row.kept === 'made' ? [{ name, letter: row.letter, row }] : [])

t.test('the table of lua/lib/record.lua has their letters', async t => {
  const [extra, sent] = [46, 88]
  const found = readLua('lib/record.lua').split('\n').filter(line => /^-- {3}\S {2}/.test(line))
    .map(line => ({ letter: line[5]!, inRecord: line.slice(extra, sent).trim(), given: line.slice(sent).trim() }))
  t.equal(new Set(letters.map(({ letter }) => letter)).size, letters.length, 'each has one of its own')
  const passed = found.filter(({ inRecord }) => /^(passed:|lineage: parent,)/.test(inRecord)).map(({ letter }) => letter)
  t.strictSame(passed.sort(), letters.filter(({ name }) => name !== 'require_human').map(({ letter }) => letter).sort(), 'what field x says was passed')
  for (const { name, letter, row } of letters) {
    const { inRecord, given } = found.find(one => one.letter === letter) ?? { inRecord: '', given: '' }
    t.match(given, /^pass/, `pass is given ${name}`)
    if (row.kept === 'word') t.ok([inRecord, given].some(text => text.includes(name.replace(/s$/, ''))), `${name} stands in the row of ${letter}`)
    t.equal(/event/.test(given) && /pass, event/.test(given), row.on.event !== undefined, `${name} in events`)
  }
})

t.test('a successor keeps them', async t => {
  const [, kept] = / \[\^([a-zA-Z]+)\]%S\+/.exec(readLua('lib/successor.lua'))!
  for (const { name, letter, row } of letters) {
    if (name === 'require_human') continue
    t.equal(kept!.includes(letter), !(row.kept === 'word' && row.isOfOneAttempt === true), name)
  }
})
