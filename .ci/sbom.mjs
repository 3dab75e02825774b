// `npm run sbom [-- PACKAGE]`: the runtime dependencies of the service, or of a workspace's package, as a bill of materials (CycloneDX, JSON) on
// stdout. It reads the lock file, so nothing must be installed. Not `npm sbom --omit=dev`: that also leaves out packages that a development
// tool depends on too, like ioredis (npm 11). With SOURCE_DATE_EPOCH (seconds) the same lock file makes the same bytes.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const root = new URL('..', import.meta.url)
const [workspace] = process.argv.slice(2)
const scope = workspace === undefined ? '--workspaces=false' : `--workspace=${workspace}`
const npm = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', scope], { cwd: root, maxBuffer: 1 << 26 })
const bill = JSON.parse(npm.toString())
const isTool = ({ properties = [] }) => properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true')

bill.components = bill.components.filter(component => !isTool(component))
// npm uses the folder's name instead of the package's.
if (workspace === undefined) {
  bill.metadata.component.name = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')).name
} else {
  // npm says that it is of the project, whatever the workspace.
  const own = bill.components.findIndex(component => component['bom-ref'].startsWith(`${workspace}@`))
  bill.metadata.component = { ...bill.components.splice(own, 1)[0], name: workspace }
}
const kept = new Set([bill.metadata.component, ...bill.components].map(component => component['bom-ref']))
bill.dependencies = bill.dependencies.filter(({ ref }) => kept.has(ref))
  .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter(on => kept.has(on)) }))

const seconds = process.env.SOURCE_DATE_EPOCH
if (seconds) {
  bill.metadata.timestamp = new Date(seconds * 1000).toISOString()
  bill.serialNumber = ''
  const hex = createHash('sha256').update(JSON.stringify(bill)).digest('hex')
  bill.serialNumber = `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`)
