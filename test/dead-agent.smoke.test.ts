import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import t from 'tap'
import type { Test } from 'tap'
import { freePort } from './faults/fleet/ports.ts'
import { loopback } from './faults/fleet/process.ts'
import { ownRedis } from './helpers/own-redis.ts'
import { killed, typed } from './helpers/processes.ts'
import { npmStart } from './helpers/service.ts'

/** An agent dies in the middle of its work, and another finishes the work. Real processes. */

const passer = 'passer-secret-0123456789'
const workers = { first: 'first-secret-0123456789', second: 'second-secret-0123456789' }

interface WorkingAgent { process: ChildProcess, next: () => Promise<any>, ended: Promise<unknown> }

function startAgent (t: Test, ...args: string[]): WorkingAgent {
  const child = spawn(process.execPath, [...typed(new URL('helpers/working-agent.ts', import.meta.url)), ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return { process: child, next: async () => JSON.parse((await lines.next()).value ?? '{}'), ended: once(child, 'exit') }
}

t.test('a killed agent’s work is finished by another', { timeout: 120_000 }, async t => {
  const port = await freePort(loopback)
  await ownRedis(t, ['--port', String(port)])
  const keys = [`passer:${passer}`, ...Object.entries(workers).map(([name, secret]) => `${name}:${secret}`)]
  const { address } = await npmStart(t, { REDIS_URL: `redis://127.0.0.1:${port}`, API_KEYS: keys.join() })
  const headers = { authorization: `Bearer ${passer}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ task: 't', heartbeat_within: 5, max_attempts: 2, retry_delay: 1 })
  const { handoff_id: id } = await (await fetch(`${address}/api/pass`, { method: 'POST', headers, body })).json() as { handoff_id: string }
  const status = async (of: string): Promise<any> => await (await fetch(`${address}/api/status/${of}`, { headers })).json()

  const first = startAgent(t, address, workers.first, id, 'goes on')
  t.match(await first.next(), { status: 'caught', heartbeat_within: 5 })
  const second = startAgent(t, address, workers.second, id, 'takes over')
  let heard = await first.next()
  // Past the first deadline: heartbeats have extended it, and the second agent is ready by then.
  for (const began = Date.parse(heard.heartbeat_expires_at); Date.parse(heard.heartbeat_expires_at) < began + 6000;) heard = await first.next()
  await killed(first.process)

  t.match(await second.next(), { status: 'expired', expired_because: 'stalled', reissued_as: String })
  t.match(await second.next(), { status: 'caught', task: 't', attempt: 2, reissue_of: id })
  t.match(await second.next(), { status: 'done' })
  t.strictSame(await second.ended, [0, null])

  const lost = await status(id)
  const next = await status(lost.reissued_as)
  t.match(lost, { status: 'expired', expired_because: 'stalled', caught_by: 'first', ended_by: null })
  t.match(next, { status: 'done', caught_by: 'second', attempt: 2, reissue_of: id })
  const [ended, made, available, caught, completed] = [lost.ended_at, next.created_at, next.available_at, next.caught_at, next.completed_at].map(Date.parse) as [number, number, number, number, number]
  // One more heartbeat may have been on its way when the agent was killed.
  t.ok(ended >= Date.parse(heard.heartbeat_expires_at), 'not before it was missed')
  t.ok(ended <= made, 'the sweep got there after its deadline')
  t.equal(available, made + 1000)
  t.ok(available <= caught && caught <= completed, 'in this order')
})
