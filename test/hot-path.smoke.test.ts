import t from 'tap'
import { missingForCallgrind, sumUp } from '../bench/callgrind.ts'
import { advice, compare, keptHotPath } from '../bench/hot-path.ts'
import { instructions } from '../bench/instructions.ts'

const missing = await missingForCallgrind()

t.test('the hot path costs no more instructions than before', { skip: missing !== null && `no ${missing}: instructions are not counted (Debian: valgrind)` }, async t => {
  const kept = await keptHotPath()
  const { table, figures } = await instructions({ say: line => t.comment(line), alsoPlain: false })
  const { dearer, cheaper } = compare(figures.ratios, kept.ratios)
  t.comment(table)
  for (const line of cheaper) t.comment(`cheaper than what is kept, so that the guard is blunt; npx tsx bench/hot-path.ts keeps it: ${line}`)
  // Another version of Node or Redis is another program, so its figures can't be compared.
  const elsewhere = kept.node !== figures.node || kept.redis !== figures.redis
  const where = `kept with Node ${kept.node} and Redis ${kept.redis}, here is ${figures.node} and ${figures.redis}: npx tsx bench/hot-path.ts keeps these`
  for (const line of dearer) t.fail(line, { skip: elsewhere && where })
  if (dearer.length === 0) t.pass(`${Object.keys(figures.ratios).length} ratios are within the limit`)
  else t.comment(advice)
})

t.test('a fifth more is too much', async t => {
  const kept = { pass: 2, catch: 1.5 }
  t.same(compare({ pass: 2.39, catch: 1.26 }, kept), { dearer: [], cheaper: [] }, 'noise')
  t.same(compare({ pass: 2.41, catch: 1.5 }, kept), { dearer: ['pass: 2.41, 1.21 times the 2.00 that was kept'], cheaper: [] })
  t.same(compare({ pass: 2, catch: 1.2 }, kept), { dearer: [], cheaper: ['catch: 1.20, 0.80 times the 1.50 that was kept'] })
  t.equal(compare({ pass: 2 }, kept).dearer.length, 1, 'what is no longer measured')
  t.equal(compare({ ...kept, done: 1 }, kept).dearer.length, 1, 'what was not kept')
  t.equal(compare({ ...kept, pass: NaN }, kept).dearer.length, 1, 'what went wrong')
})

t.test('callgrind’s output is summed up', async t => {
  const dump = `events: Ir
totals: 61

ob=(1) /usr/bin/node
fl=(1) ???
fn=(1) uv_run
0 10
+3 5
cob=(2) ???
cfn=(2) 0x0000000012345678
calls=2 0
0 21
fn=(3) Builtins_LoadIC
12 20

ob=(2)
fn=(2)
* 1
-4 20
cob=(1)
cfn=(3)
calls=1 12
* 20

ob=(3) /usr/lib/libc.so.6
fn=(4) memcpy
0 5
`
  t.same(sumUp(dump), { javascript: 20 + 1 + 20, native: 10 + 5 + 5 })
})
