// `npm run audit`: asks the registry what is known against the runtime dependencies. Each finding needs an answer in docs/security.md, or this
// fails (1). It also fails when nobody could be asked (2): not every registry can be. NPM_AUDIT_REGISTRY names one that can; npm's own options
// may follow. It reads the lock file, so nothing must be installed.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const root = new URL('..', import.meta.url)
const registry = process.env.NPM_AUDIT_REGISTRY
// npm by itself waits for a silent registry for a quarter of an hour.
const limits = ['--fetch-timeout=30000', '--fetch-retries=1']
const options = ['--omit=dev', '--package-lock-only', '--json', ...limits, ...registry ? [`--registry=${registry}`] : [], ...process.argv.slice(2)]
const { error, stdout, stderr } = spawnSync('npm', ['audit', ...options], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 })
if (error) throw error

const report = parsed(stdout)
if (report.auditReportVersion === undefined) {
  const why = report.message || report.error?.summary || stderr.trim()
  console.error(`audit: nobody could be asked: ${why}`)
  console.error('audit: name a registry that has an audit endpoint: NPM_AUDIT_REGISTRY=https://…')
  process.exit(2)
}

// A package that is affected only by what it depends on has the names of that in `via`, and no finding of its own.
const findings = new Map(Object.values(report.vulnerabilities).flatMap(({ via }) => via).filter(one => typeof one === 'object').map(one => [one.url, one]))
const answers = answered(readFileSync(new URL('docs/security.md', root), 'utf8'))
const open = [...findings.keys()].filter(url => !answers.includes(url))
for (const [url, { severity, name, range, title }] of findings) {
  console.log(`audit: ${severity}: ${name} ${range}: ${title}: ${url}: ${open.includes(url) ? 'no answer in docs/security.md' : 'answered in docs/security.md'}`)
}
for (const url of answers.filter(url => !findings.has(url))) console.log(`audit: an answer in docs/security.md that nothing needs any more: ${url}`)
console.log(`audit: ${findings.size} known vulnerabilities in ${report.metadata.dependencies.prod} runtime dependencies, ${open.length} without an answer`)
process.exit(open.length === 0 ? 0 : 1)

function parsed (text) {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** The findings of the section's table, by their addresses, if they have an answer: `| [GHSA-…](https://…) | package | answer |`. */
function answered (page) {
  const [, section = ''] = /^## Known vulnerabilities in dependencies\n([^]*?)(?=^## |$(?![^]))/m.exec(page) ?? []
  return [...section.matchAll(/^\| \[[^\]]*\]\(([^)]+)\) \| [^|]+ \| [^|\s][^|]* \|$/gm)].map(([, url]) => url)
}
