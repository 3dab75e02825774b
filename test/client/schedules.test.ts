import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { HandoffClient, isHandoffError } from '../../src/clients/typescript/index.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { handoff } from '../helpers/command.ts'
import { projectRoot } from '../helpers/service.ts'

t.test('the client and the command steer schedules', async t => {
  const { app } = await testApp(t)
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 })
  const { schedules } = new HandoffClient({ baseUrl, key: secrets.alice })
  t.match(await schedules.put('one', { every: 3600, handoff: { task: 'x' } }), { name: 'one', every: 3600, paused: false })
  t.match(await schedules.get('one'), { name: 'one', handoff: { task: 'x' } })
  t.equal((await schedules.pause('one')).paused, true)
  t.equal((await schedules.resume('one')).paused, false)
  const { handoff_id: id } = await schedules.run('one')
  t.match((await schedules.runs('one', { limit: 1 })).items, [{ handoff_id: id, by: 'run' }])
  t.match(await schedules.backfill('one', '2026-11-20T00:00:00Z', '2026-11-20T01:00:00Z'), { passed: 0, more: false, next: null })
  t.match((await schedules.list({ limit: 1 })).items, [{ name: 'one' }])
  t.equal(await schedules.delete('one'), undefined)
  await t.rejects(schedules.get('one'), { code: 'not_found' })
  t.ok(await schedules.delete('one').then(() => false, error => isHandoffError(error, 'not_found')))

  const program = `
from agent_handoff import Client
schedules = Client().schedules
assert schedules.put("py", {"every": 3600, "handoff": {"task": "x"}})["every"] == 3600
assert schedules.get("py")["name"] == "py"
assert schedules.pause("py")["paused"] is True
assert schedules.resume("py")["paused"] is False
id = schedules.run("py")["handoff_id"]
assert schedules.runs("py", limit=1)["items"][0]["handoff_id"] == id
assert schedules.backfill("py", "2026-11-20T00:00:00Z", "2026-11-20T01:00:00Z")["passed"] == 0
assert [one["name"] for one in schedules.list()["items"]] == ["py"]
assert schedules.list()["items"][0].text.startswith('{"name":"py"')
schedules.delete("py")

import asyncio
from agent_handoff import AsyncClient

async def main() -> None:
    async with AsyncClient() as client:
        schedules = client.schedules
        assert (await schedules.put("aio", {"every": 3600, "handoff": {"task": "x"}}))["every"] == 3600
        assert (await schedules.get("aio"))["name"] == "aio"
        assert (await schedules.pause("aio"))["paused"] is True
        assert (await schedules.resume("aio"))["paused"] is False
        passed = await schedules.run("aio", idempotency_key="k")
        assert (await schedules.run("aio", idempotency_key="k"))["handoff_id"] == passed["handoff_id"]
        runs = await schedules.runs("aio", limit=5)
        assert [one["handoff_id"] for one in runs["items"]] == [passed["handoff_id"]], runs.text
        assert (await schedules.backfill("aio", "2026-11-20T00:00:00Z", "2026-11-20T01:00:00Z"))["more"] is False
        assert [one["name"] for one in (await schedules.list(limit=5))["items"]] == ["aio"]
        await schedules.delete("aio")
        assert (await schedules.list())["items"] == []

asyncio.run(main())
`
  const python = await promisify(execFile)('python3', ['-c', program], { env: { PATH: process.env.PATH, PYTHONPATH: 'src/clients/python', HANDOFF_URL: baseUrl, HANDOFF_KEY: secrets.alice }, cwd: projectRoot }).catch(error => error)
  t.equal(python.stderr, '')

  const env = { HANDOFF_URL: baseUrl, HANDOFF_KEY: secrets.alice }
  const schedule = (...args: string[]) => handoff(['schedules', ...args], { env })
  const made = await schedule('set', 'two', '--cron', '0 9 * * *', '--timezone', 'Europe/Berlin', '--task', 'T', '--to', 'reporter', '--json')
  t.match(JSON.parse(made.stdout), { name: 'two', cron: '0 9 * * *', handoff: { task: 'T', to: 'reporter' } })
  t.match((await schedule('set', 'three', '--every', '15m', '--task', 'T', '--json')).stdout, /"every":900/)
  for (const [args, words] of [[['list'], /two/], [['get', 'two'], /Europe\/Berlin/], [['pause', 'two'], /paused +true/], [['resume', 'two'], /paused +false/], [['run', 'two'], /handoff_id/], [['runs', 'two'], /passed/], [['backfill', 'two', '--since', '2026-11-20T00:00:00Z', '--until', '2026-11-20T01:00:00Z'], /passed +0/], [['delete', 'two'], /deleted/]] as const) {
    const { stdout, code } = await schedule(...args)
    t.match(stdout, words)
    t.notMatch(stdout, 'There are more')
    t.equal(code, 0)
  }
  t.equal((await schedule('get', 'two')).code, 1)
  for (const args of [['set', 'x', '--task', 't'], ['set', 'x', '--cron', '@daily'], ['get'], ['start', 'x'], ['backfill', 'three']]) t.equal((await schedule(...args)).code, 2, args.join(' '))
})
