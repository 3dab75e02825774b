/** The glossary has each noun that names a class or a folder of src/, once. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { projectRoot } from '../helpers/service.ts'

/** Words of names that mean here what they mean in any program: they need no row. */
const everyday = new Set(`
  after asset auth bad block body broken cancelling channel check cli client cluster command common connection core count cron definition
  description disk doctor embedded ended ending endpoint error everything failed failure family fault former from histogram http in indexer
  inline input joint json known large largest limit line lingering list log looked mailer many mcp message metric
  metadata mismatch name not one open operate paced pool post protocol queue random rate raw read redis refused request resource right route
  sample schema script secret sender service setting several share shared sign sleeper stale statistic store stream
  subscription system table taker thread time together too trace tracing type typescript unavailable up usage view watched
  web writer writing written wrong
`.trim().split(/\s+/))

const singular = (word: string) => word.replace(/ies$/, 'y').replace(/(x|ss|ch|sh)es$/, '$1').replace(/(?<=[^sui])s$/, '')

/** The words of a name, in lower case and singular: `QueuePools` is queue and pool. */
const wordsOf = (name: string) =>
  name.replace(/([a-z])(?=[A-Z])/g, '$1 ').split(/[\s-]+/).map(word => singular(word.toLowerCase()))

const read = (path: string) => readFileSync(join(projectRoot, path), 'utf8')

/** Folders that are built or installed, or named after a product. */
const notOurs = /^(node_modules|dist|python|claude-code)$/

/** The names of folders and classes. */
function namesOf (folder: string): string[] {
  return readdirSync(join(projectRoot, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return notOurs.test(entry.name) ? [] : [entry.name, ...namesOf(path)]
    return /\.m?ts$/.test(entry.name) ? [...read(path).matchAll(/^(?:export )?class (\w+)/gm)].map(([, name]) => name!) : []
  })
}

/** Each row's terms, without the heading. */
const rows = [...read('docs/glossary.md').matchAll(/^\| ([^|]+) \|/gm)].slice(1).map(([, terms]) => terms!.split(', '))
const terms = rows.flat().map(term => wordsOf(term).join(' '))

t.test('each noun that names a class or a folder is in the glossary, or an everyday word', async t => {
  const names = namesOf('src')
  t.ok(names.includes('HandoffService') && names.includes('handoffs'))
  const used = new Set(names.flatMap(name => terms.includes(wordsOf(name).join(' ')) ? [] : wordsOf(name)))
  t.strictSame([...used].filter(word => !terms.includes(word) && !everyday.has(word)), [], 'these need a row in docs/glossary.md')
  t.strictSame([...everyday].filter(word => !used.has(word)), [], 'no name has these')
})

t.test('no word is in the glossary twice, and rows are in order', async t => {
  t.strictSame(terms.filter((term, at) => terms.indexOf(term) !== at), [])
  t.strictSame(terms.filter(term => everyday.has(term)), [], 'an everyday word has no row')
  const firsts = rows.map(([first]) => first!.toLowerCase())
  t.strictSame(firsts, firsts.toSorted())
})
