/**
 * MCP through HAProxy and three replicas, one of which drains and one of which is killed meanwhile. Each call answers, or fails with an error
 * that the same call mends, repeated with its idempotency_key.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { hasHaproxy, startHaproxy } from '../faults/fleet/haproxy.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import type { ServiceReplica } from '../faults/fleet/service.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { agentAt, eras, told } from '../helpers/mcp.ts'
import type { Agent } from '../helpers/mcp.ts'
import { until } from '../helpers/until.ts'

t.setTimeout(300_000)

const passers = 4
const each = 50

/** Repeats a call, with its key, until it is answered. @param failures what it was told before */
async function insist (agent: Agent, name: string, args: object, failures: string[]): Promise<any> {
  for (;;) {
    try {
      const result = await agent.call(name, args)
      const answer = told(result)
      if (result.isError !== true) return answer
      if (answer.retryable !== true) throw Object.assign(new Error(`${name}: ${answer.code}`), { isFinal: true })
      failures.push(answer.code)
    } catch (error) {
      if ((error as { isFinal?: true }).isFinal === true) throw error
      failures.push((error as Error).message)
    }
    await sleep(100)
  }
}

async function callsOf ({ url }: ServiceReplica): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  return [...metrics.matchAll(/^handoff_mcp_calls_total\{[^}]*\} (\d+)$/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0)
}

async function fleet (t: Test): Promise<{ replicas: ServiceReplica[], url: string }> {
  const redis = await startRedisServer(t)
  const env = { ...testKeys, REDIS_URL: redis.url, BASE_URL: 'http://127.0.0.1:8080', TRUSTED_PROXIES: '127.0.0.1' }
  const replicas = await Promise.all([1, 2, 3].map(() => startServiceReplica(t, { env })))
  const { url } = await startHaproxy(t, replicas.map(({ url }) => new URL(url).host))
  return { replicas, url }
}

for (const era of eras) {
  t.test(`${era}: a replica that drains and one that is killed`, { skip: hasHaproxy() ? false : 'haproxy is not installed' }, async t => {
    const { replicas, url } = await fleet(t)
    const agents = (who: 'alice' | 'bob') => Promise.all(Array.from({ length: passers }, () => agentAt(t, url, secrets[who], era)))
    const [alices, bobs] = await Promise.all([agents('alice'), agents('bob')])
    const failures: string[] = []
    const passed = new Map<string, string>()
    const caught: string[] = []
    const total = passers * each

    async function pass (agent: Agent, at: number): Promise<void> {
      for (let index = 0; index < each; index++) {
        const task = `${at}-${index}`
        const { handoff_id: id } = await insist(agent, 'handoff_pass', { task, to: 'desk', idempotency_key: `pass-${task}` }, failures)
        passed.set(id, task)
      }
    }
    async function work (agent: Agent, at: number): Promise<void> {
      for (let index = 0; caught.length < total; index++) {
        const next = await insist(agent, 'handoff_catch_next', { inbox: 'desk', wait: 2, idempotency_key: `catch-${at}-${index}` }, failures)
        if (next.items !== undefined) continue
        caught.push(next.handoff_id)
        await insist(agent, 'handoff_done', { id: next.handoff_id, output: { task: next.task }, idempotency_key: `done-${next.handoff_id}` }, failures)
      }
    }
    const agentsEnd = Promise.all([...alices.map(pass), ...bobs.map(work)])
    agentsEnd.catch(() => {})
    const soFar = (share: number) => Promise.race([until(() => caught.length >= total * share, 60_000), agentsEnd])
    await soFar(0.2)
    t.ok((await Promise.all(replicas.map(callsOf))).every(calls => calls > 0), 'each replica is asked')
    await replicas[0]!.stop()
    await soFar(0.5)
    const before = failures.length
    // Requests wait for it when it is killed.
    replicas[1]!.pause()
    await sleep(500)
    await replicas[1]!.kill()
    await agentsEnd

    t.equal(passed.size, total, 'each pass made one handoff')
    t.strictSame(caught.toSorted(), [...passed.keys()].toSorted(), 'each was caught once')
    for (const [id, task] of passed) t.match(await insist(alices[0]!, 'handoff_status', { id }, failures), { status: 'done', caught_by: 'bob', result: { task } })
    t.comment(`${before} calls failed before the kill, ${failures.length - before} after it`)
    // HAProxy answers so, or it only closes the connection, where the replica's had been kept.
    t.strictSame(failures.filter(failure => !/\bunavailable\b|^fetch failed$/.test(failure)), [], 'what fails says that it may be repeated')
  })
}
