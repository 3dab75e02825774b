/** Files and headings that comments cite exist. */
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import t from 'tap'
import { projectFiles, readPage } from '../helpers/pages.ts'
import { projectRoot } from '../helpers/service.ts'

const files = projectFiles()
/** Every suffix of a path: `http/problems.ts` and `problems.ts` are src/http/problems.ts. */
const known = new Set(files.flatMap(file => {
  const parts = file.split('/')
  return parts.map((_, at) => parts.slice(at).join('/'))
}))

/** A file's comments, by the syntax of its kind. After a quote it is a string instead. */
function commentsOf (path: string, text: string): string[] {
  if (/\.(m?[jt]s)$/.test(path)) return matches(text, /\/\*[^]*?\*\/|(?<=^|\s)\/\/ .*/gm)
  if (path.endsWith('.css')) return matches(text, /\/\*[^]*?\*\//g)
  if (path.endsWith('.lua')) return matches(text, /--.*/g)
  return matches(text, /(?<=^|\s)# .*/gm)
}

const matches = (text: string, of: RegExp) => [...text.matchAll(of)].map(([all]) => all)

/** Missing files and headings that a comment cites. @param path of the file with the comment */
function missingIn (path: string, comment: string): string[] {
  const cited = [...comment.matchAll(/(?<![\w/.@$-])((?:\.{1,2}\/)?[\w-][\w./-]*\.(?:md|m?ts|mjs|lua|ya?ml|cfg|acl|conf|sh|json|svg))\b(?:, "([^"]+)")?/g)]
  return cited.flatMap(([all, name, heading]) => {
    if (!isThere(path, name!)) return [`${path}: ${name}`]
    // A section is cited with its page's whole path, so that the page is unambiguous.
    return heading === undefined || !name!.endsWith('.md') || (files.includes(name!) && readPage(name!).headings.includes(heading)) ? [] : [`${path}: ${all}`]
  })
}

function isThere (path: string, name: string): boolean {
  return known.has(name) || files.includes(posix.join(posix.dirname(path), name))
}

const sources = files.filter(path => /^(src|lua|test|bench|deploy|\.ci)\/|^Dockerfile$/.test(path) && !/\.(md|json|svg)$/.test(path))

t.test('every file that a comment cites exists', async t => {
  const missing = sources.flatMap(path => commentsOf(path, readFileSync(`${projectRoot}/${path}`, 'utf8')).flatMap(comment => missingIn(path, comment)))
  t.strictSame(missing, [])
  t.ok(sources.length > 300)
})
