import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { clientTest, withKey } from '../helpers/client.ts'
import { scratchDir, withoutTap } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'

/** The conformance kit of the protocol's authors, against the real service. What it isn't to see pass, and why, is in mcp-conformance.yaml. */

const kit = join(projectRoot, 'test/others/node_modules/@modelcontextprotocol/conformance/dist/index.js')
/** It needs Node 22 or later; .ci/run brings one. */
const node = Number(process.versions.node.split('.')[0]) >= 22 ? process.execPath : join(projectRoot, '.cache/node-24/node_modules/.bin/node')
const skip = existsSync(node) ? false : 'the kit needs Node 22 or later'

/** How many of a revision's checks pass. */
const passing = { '2025-11-25': 35, '2026-07-28': 99 }

for (const [revision, count] of Object.entries(passing)) {
  t.test(`what ${revision} requires of servers`, { skip }, async t => {
    const front = await withKey(t, () => service.address)
    const service = await clientTest(t, { BASE_URL: front })
    const args = ['server', '--url', `${front}/mcp`, '--requirements', revision, '--expected-failures', join(projectRoot, 'test/others/mcp-conformance.yaml')]
    const child = spawn(node, [kit, ...args], { cwd: await scratchDir(t), env: withoutTap(), stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill())
    const [said, [status]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    const [, passed] = /^Total: (\d+) passed/m.exec(said) ?? []
    t.equal(status, 0, status === 0 ? 'only what is expected fails' : said.slice(said.indexOf('=== SUMMARY')))
    t.equal(Number(passed), count)
  })
}
