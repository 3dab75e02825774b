/** Runs the commands of docs/events.md. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { commandsUnder } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { npmStart } from '../helpers/service.ts'

t.test('docs/events.md: switched on, pages, the stream', { timeout: 120_000 }, async t => {
  const cwd = await scratchDir(t)
  const [, value] = /^EVENTS_RETENTION=(\S+) npm start\n$/.exec(commandsUnder('docs/events.md', 'Events'))!
  const { address } = await npmStart(t, { DATA_DIR: join(cwd, '.data'), EVENTS_RETENTION: value! })
  const type = (script: string) => execFileSync('bash', ['-euo', 'pipefail', '-c', script.replaceAll('http://127.0.0.1:8080', address)], { cwd, encoding: 'utf8' })

  const [first, second, ...others] = type(commandsUnder('docs/events.md', 'Pages')).trimEnd().split('\n').map(line => JSON.parse(line))
  t.match(first.items, [{ type: 'handoff.passed', data: { status: 'pending', to: 'counter' } }])
  t.strictSame([second, others], [{ items: [], next: first.next }, []])

  t.match(type(commandsUnder('docs/events.md', 'The stream')), `retry: 2000\n\nid: ${first.next}\nevent: handoff.passed\ndata: ${JSON.stringify(first.items[0])}\n\n`)
})
