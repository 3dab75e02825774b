import t from 'tap'
import { missingForCallgrind } from '../bench/callgrind.ts'
import { advice, compare, keptHotPath } from '../bench/hot-path.ts'
import { instructions } from '../bench/instructions.ts'

const missing = await missingForCallgrind()

t.test('the hot path costs no more instructions than before', { timeout: 1_800_000, skip: missing !== null && `no ${missing}: instructions are not counted (Debian: valgrind)` }, async t => {
  const kept = await keptHotPath()
  const count = async () => {
    const { table, figures } = await instructions({ say: line => t.comment(line), alsoPlain: false })
    t.comment(table)
    return figures
  }
  const figures = await count()
  let { dearer, cheaper } = compare(figures.ratios, kept.ratios)
  if (dearer.length > 0) {
    // What a server does once in a while falls into some counts, the more so on a busy machine. It only makes them dearer.
    t.comment(`counted again: ${dearer.join('; ')}`)
    const again = (await count()).ratios
    const lower = Object.entries(figures.ratios).map(([what, ratio]) => [what, Math.min(ratio, again[what] ?? NaN)])
    ;({ dearer, cheaper } = compare(Object.fromEntries(lower), kept.ratios))
  }
  for (const line of cheaper) t.comment(`cheaper than what is kept, so that the guard is blunt; npx tsx bench/hot-path.ts keeps it: ${line}`)
  // Another version of Node or Redis is another program, so its figures can't be compared.
  const elsewhere = kept.node !== figures.node || kept.redis !== figures.redis
  const where = `kept with Node ${kept.node} and Redis ${kept.redis}, here is ${figures.node} and ${figures.redis}: npx tsx bench/hot-path.ts keeps these`
  for (const line of dearer) t.fail(line, { skip: elsewhere && where })
  if (dearer.length === 0) t.pass(`${Object.keys(figures.ratios).length} ratios are within the limit`)
  else t.comment(advice)
})
