import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { HandoffClient } from '../../src/clients/typescript/index.ts'
import { clientTest, withKey } from '../helpers/client.ts'
import { withoutTap } from '../helpers/processes.ts'
import { sendsPushes } from '../helpers/pushes.ts'

/** The conformance kit of A2A's authors for 1.0 (branch 1.0-dev), in the folder that A2A_TCK names, against the real service. */

const kit = process.env.A2A_TCK
const own = join(kit ?? '', '.venv/bin/python')
const python = existsSync(own) ? own : 'python3'
const modules = 'import pytest, pytest_asyncio, httpx, grpc, jsonschema, jinja2, google.rpc'
const skip = kit === undefined
  ? 'A2A_TCK names no folder of the kit'
  : spawnSync(python, ['-c', modules]).status === 0 ? false : 'the kit’s Python packages are not to be had'

/** What its agent does, by how a message's id begins (scenarios/*.feature). */
const scenarios: ReadonlyArray<[prefix: RegExp, output: object]> = [
  [/^tck-(stream-)?artifact-file-url/, artifact({ url: 'https://example.com/output.txt', filename: 'output.txt', mediaType: 'text/plain' })],
  [/^tck-(stream-)?artifact-file/, artifact({ raw: 'dGV4dA==', filename: 'output.txt', mediaType: 'text/plain' })],
  [/^tck-artifact-data/, artifact({ data: { key: 'value', count: 42 } })],
  [/^tck-(stream|artifact)/, artifact({ text: 'Generated text content' })],
]
function artifact (part: object): object {
  return { artifacts: [{ artifactId: 'a', parts: [part] }] }
}

function work (client: HandoffClient, signal: AbortSignal): Promise<void> {
  return client.work('desk', async ({ handoff_id: id, context }) => {
    const { messageId } = (context as { a2a: { messageId: string } }).a2a
    if (messageId.startsWith('tck-input-required')) {
      await client.ask(id, 'More?', { of: 'passer' })
      return (await client.asked(id, { wait: Infinity, signal })).answer
    }
    if (messageId.startsWith('tck-reject-task')) return await client.decline(id, 'rejected')
    return scenarios.find(([prefix]) => prefix.test(messageId))?.[1] ?? { text: 'Hello from TCK' }
  }, { signal, concurrency: 100 })
}

/** What isn't to pass, and why. */
const expected: Readonly<Record<string, string>> = {
  'core_operations/test_artifacts.py::TestMessageResponse::test_returns_message_with_text_part': 'an inbox answers with tasks alone: a worker may be asleep',
  'core_operations/test_error_handling.py::TestRestErrorStructure::test_error_uses_aip193_format': '1.0.1 has application/a2a+json, 1.0.0 application/json',
  'http_json/test_problem_details.py::TestAIP193ErrorFormat::test_error_content_type': '1.0.1 has application/a2a+json, 1.0.0 application/json',
  'http_json/test_http_status.py::TestHttpJsonStatusCodes::test_content_type_not_supported_returns_415': '1.0.1 has 400 for ContentTypeNotSupported, 1.0.0 415',
  'core_operations/test_requirements.py::test_must_requirement[CORE-SEND-003': 'the kit wants this error, and takes each error for a failure',
}

t.test('what A2A 1.0 requires of an agent', { skip }, async t => {
  const front = await withKey(t, () => service.address)
  const service = await clientTest(t, { ...sendsPushes, WEBHOOK_ALLOW: '127.0.0.0/8,::1', BASE_URL: front, A2A_ROOT: 'default/desk' })
  const skills = [{ id: 'kit', name: 'Kit', description: 'Does what the kit asks for.', tags: ['kit'] }]
  await service.call('operator', 'PUT', '/api/inboxes/desk', { card: { description: 'The kit’s agent.', public: true, deduplicate: false, skills } })
  service.app.deliverer!.start()
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  work(service.client('bob'), stop.signal).catch(() => {})
  const child = spawn(python, ['-m', 'pytest', 'tests/compatibility/', `--sut-host=${front}`, '--tb=short', '-q', '-p', 'no:cacheprovider', '-rfE'], {
    cwd: kit, env: { ...withoutTap(), PYTHONDONTWRITEBYTECODE: '1' }, stdio: ['ignore', 'pipe', 'inherit']
  })
  t.teardown(() => child.kill())
  const [said] = await Promise.all([text(child.stdout), once(child, 'exit')])
  const failed = [...said.matchAll(/^(?:FAILED|ERROR) tests\/compatibility\/(\S+)/gm)].map(([, name]) => name!)
  const [unexpected, known] = [false, true].map(is => failed.filter(name => Object.keys(expected).some(one => name.startsWith(one)) === is))
  t.strictSame(unexpected, [], unexpected!.length === 0 ? 'only what is expected fails' : said.slice(-20_000))
  t.comment(/^\d+ failed.*/m.exec(said)?.[0] ?? said)
  t.equal(known!.length, 7, 'and all of that')
})
