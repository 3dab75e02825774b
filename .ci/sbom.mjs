// `npm run sbom`: the runtime dependencies as a bill of materials (CycloneDX, JSON) on stdout. It reads the lock file, so nothing must be
// installed. Not `npm sbom --omit=dev`: that also leaves out packages that a development tool depends on too, like ioredis (npm 11).
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const root = new URL('..', import.meta.url)
const npm = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--workspaces=false'], { cwd: root, maxBuffer: 1 << 26 })
const bill = JSON.parse(npm.toString())
const isTool = ({ properties = [] }) => properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true')

bill.components = bill.components.filter(component => !isTool(component))
const kept = new Set([bill.metadata.component, ...bill.components].map(component => component['bom-ref']))
bill.dependencies = bill.dependencies.filter(({ ref }) => kept.has(ref))
  .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter(on => kept.has(on)) }))
// npm uses the folder's name instead.
bill.metadata.component.name = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')).name
process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`)
