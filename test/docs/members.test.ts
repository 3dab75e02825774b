import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { members } from '../../src/core/members.ts'
import { readLua } from '../../src/redis/expand.ts'

/** What is written of the members of pass outside src. MEMBERS=write npm test -- test/docs/members.test.ts writes the table anew. */

const rows = Object.entries(members)
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

t.test('docs/api.md has the table of members', async t => {
  const table = ['| member | | |', '|---|---|---|', ...rows.map(([name, { docs: [values, meaning] }]) => `| \`${name}\` | ${values} | ${meaning} |`)].join('\n')
  const page = read('docs/api.md')
  const block = /(?<=<!-- members -->\n).*?(?=\n<!-- \/members -->)/s
  if (process.env.MEMBERS === 'write') writeFileSync(new URL('../../docs/api.md', import.meta.url), page.replace(block, () => table))
  else t.equal(block.exec(page)?.[0], table, 'take the actual one, or MEMBERS=write')
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
