import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { projectFiles } from '../helpers/pages.ts'
import { projectRoot } from '../helpers/service.ts'

const read = (path: string) => readFile(join(projectRoot, path), 'utf8')
const page = await read('docs/deploy.md')
/** `${NAME:-image}`, so that an operator can give the image with its digest. */
const settable = /^\$\{([A-Z]+_IMAGE):-[a-z/.]+:[\w.-]+\}$/
const byDigest = /@sha256:[0-9a-f]{64}$/
/** The images that are built here. */
const own = /^handoff(:\d+\.\d+\.\d+)?$/

/** Every value of a member `image` in a YAML document. */
function imagesIn (node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return []
  return Object.entries(node).flatMap(([name, value]) => name === 'image' && typeof value === 'string' ? [value] : imagesIn(value))
}

/** @returns the variables that set those that aren't named by digest @throws for one that can't be set */
function variablesOf (images: readonly string[]): string[] {
  return images.filter(image => !byDigest.test(image) && !own.test(image)).map(image => {
    const [, name] = settable.exec(image) ?? []
    if (name === undefined) throw new Error(`${image} has no digest, and none can be given`)
    return name
  })
}

t.test('each image of others is named by digest, or can be', async t => {
  for (const path of projectFiles().filter(path => /^deploy\/.*\.ya?ml$/.test(path))) {
    const images = parseAllDocuments(await read(path), { merge: true }).flatMap(document => imagesIn(document.toJS()))
    for (const name of variablesOf(images)) t.match(page, `\`${name}\``, `docs/deploy.md: ${name}, of ${path}`)
  }
  const lines = (await read('Dockerfile')).split('\n')
  const from = lines.flatMap(line => /^FROM (\S+)/.exec(line)?.[1] ?? [])
  t.strictSame([...new Set(from)], ['${NODE_IMAGE}'], 'one image for all stages') // eslint-disable-line no-template-curly-in-string
  const [given, ...others] = lines.flatMap(line => /^ARG NODE_IMAGE=(\S+)$/.exec(line)?.[1] ?? [])
  t.strictSame(others, [])
  t.ok((await read('deploy/compose/compose.yaml')).includes(`NODE_IMAGE:-${given}}`), 'and the same default in compose.yaml')
})
