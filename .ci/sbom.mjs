// `npm run sbom`: what the service runs on, as a bill of materials (CycloneDX, JSON) on stdout. By the lock file, so nothing need
// be installed. Not `npm sbom --omit=dev`: that leaves out as well what one of our tools depends on besides, ioredis for one (npm 11).
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const root = new URL('..', import.meta.url)
const npm = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'], { cwd: root, maxBuffer: 1 << 26 })
const bill = JSON.parse(npm.toString())
const isTool = ({ properties = [] }) => properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true')

bill.components = bill.components.filter(component => !isTool(component))
const kept = new Set([bill.metadata.component, ...bill.components].map(component => component['bom-ref']))
bill.dependencies = bill.dependencies.filter(({ ref }) => kept.has(ref))
  .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter(on => kept.has(on)) }))
// npm takes the folder's name for it.
bill.metadata.component.name = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')).name
process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`)
