import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { mutated } from './mutants.ts'

const root = new URL('../', import.meta.url)
const count = mutated.reduce((sum, { changes }) => sum + changes.length, 0)

t.ok(count >= 400, `${count} changes`)

t.test('each change is of a text that is in its file once', async t => {
  for (const { file, changes } of mutated) {
    const text = readFileSync(new URL(file, root), 'utf8')
    for (const [from, to] of changes) t.ok(text.split(from).length === 2 && from !== to, `${file}: ${from}`)
    t.equal(new Set(changes.map(([from, to]) => `${from}\0${to}`)).size, changes.length, `${file} has each change once`)
  }
})

t.test('quick tests are to notice it', async t => {
  for (const test of new Set(mutated.flatMap(({ tests }) => tests))) {
    t.ok(existsSync(new URL(`test/${test}.test.ts`, root)) && !/\.(?:smoke|long)$/.test(test), test)
  }
  t.strictSame(mutated.filter(({ tests }) => tests.length === 0), [])
})
