import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { clientTest } from '../helpers/client.ts'
import { handoff } from '../helpers/command.ts'
import { commandsUnder, readPage } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { remoteAgent } from '../helpers/remote-agent.ts'

/** The card, the program and the command of docs/a2a.md, as they are there. */

t.test('the page’s inbox answers the page’s program', async t => {
  const { blocks } = readPage('docs/a2a.md')
  const [card] = blocks.filter(({ language }) => language === 'json')
  const [program] = blocks.filter(({ language }) => language === 'js')
  const service = await clientTest(t)
  const dir = await scratchDir(t)
  await mkdir(join(dir, '.data'))
  await writeFile(join(dir, '.data/approver.key'), `${secrets.operator}\n`)
  await writeFile(join(dir, 'card.json'), card!.text)
  const { stdout } = await promisify(execFile)('bash', ['-euc', commandsUnder('docs/a2a.md', 'An inbox as an agent')], { cwd: dir, env: { PATH: process.env.PATH, HANDOFF_URL: service.address } })
  t.match(JSON.parse(stdout), { inbox: 'drafts' })
  const path = join(dir, 'review.mjs')
  await writeFile(path, program!.text.replace(/'(@a2a-js\/sdk(?:\/client)?)'/g, (_, name: string) => JSON.stringify(import.meta.resolve(name))))
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  service.client('bob').work('drafts', ({ task }) => ({ text: `Read: ${task}` }), { signal: stop.signal }).catch(() => {})
  const before = { ...process.env }
  t.teardown(() => { process.env = before })
  Object.assign(process.env, { HANDOFF_URL: service.address, HANDOFF_KEY: secrets.alice })
  const said: unknown[] = []
  t.intercept(console, 'log', { value: (line: unknown) => { said.push(line) } })
  await import(path)
  t.strictSame(said, ['Read: Review: all is wel.'])
})

t.test('the page’s agent serves the page’s inbox', async t => {
  const service = await clientTest(t)
  const { url } = await remoteAgent(t, says => says.message([{ text: 'Fine.' }]))
  const key = join(await scratchDir(t), 'agent.key')
  await writeFile(key, 'a-key\n')
  const words = commandsUnder('docs/a2a.md', 'An agent as a worker').trim().replace('https://agent.example.com', url).replace('agent.key', key).split(' ')
  t.strictSame(words.slice(0, 3), ['npx', 'handoff', 'work'])
  const id = (await service.client('alice').pass({ task: 'x', to: words[3]! })).handoff_id
  const env = { HANDOFF_URL: service.address, HANDOFF_KEY: secrets.bob }
  t.match(await handoff([...words.slice(2), '--once'], { env }), { code: 0 })
  t.match(await service.client('alice').status(id), { status: 'done', result: { text: 'Fine.' } })
})
