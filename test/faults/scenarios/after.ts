import { setTimeout as sleep } from 'node:timers/promises'
import { startCluster } from '../fleet/cluster.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import type { Scenario, Stage } from '../scenario.ts'

/** How many handoffs of one tenant end at once, and how many come after each of those. */
const [ends, each] = [100, 1000]
/** Within this long what comes after a handoff is released (ms; docs/api.md, "In order"). */
const promised = 3000
/** Each tenant has one agent. */
const keys = { many: 'many-releases-0123456789abcdef', only: 'only-one-release-0123456789abcdef' }
const perBatch = 100

interface Measured { only: number, all: number, passes: number[] }

/** One tenant's many releases beside another tenant's only one, which nobody must wait for. */
export const release: Scenario = {
  name: 'release',
  fault: `none: ${ends} handoffs of one tenant end at once, ${each.toLocaleString('en')} come after each of them, and another tenant has one of each`,
  goal: `the other tenant's is released within ${promised / 1000} s, on one Redis and in a Cluster`,
  async run (t, scale) {
    const redis = await startRedisServer(t)
    const one = await measure(t, redis.url, scale)
    t.comment(`one Redis: ${told(one)}`)
    const cluster = await startCluster(t, { replicas: 0 })
    const many = await measure(t, cluster.url, scale)
    t.comment(`a Cluster: ${told(many)}`)
    const count = Math.ceil(ends * scale)
    return {
      load: `${count} ends × ${each.toLocaleString('en')}`,
      result: `one Redis: ${told(one)}; a Cluster of 3 masters: ${told(many)}`,
      held: one.only <= promised && many.only <= promised,
    }
  }
}

function told ({ only, all, passes }: Measured): string {
  const sorted = [...passes].sort((a, b) => a - b)
  return `the other's after ${only.toFixed(0)} ms, all after ${(all / 1000).toFixed(1)} s; a pass meanwhile took ${sorted[sorted.length >> 1]!.toFixed(0)} ms (p50)`
}

async function measure (t: Stage, url: string, scale: number): Promise<Measured> {
  const env = { REDIS_URL: url, API_KEYS: `many/agent:${keys.many},only/agent:${keys.only}` }
  const { url: at } = await startServiceReplica(t, { env })
  const call = async (who: keyof typeof keys, method: string, path: string, body?: object) => {
    for (;;) {
      const answer = await fetch(`${at}${path}`, {
        method, headers: { authorization: `Bearer ${keys[who]}`, 'content-type': 'application/json' }, ...body && { body: JSON.stringify(body) }
      })
      const said = await answer.json() as Record<string, any>
      if (answer.ok) return said
      if (answer.status !== 503 && answer.status !== 429) throw new Error(JSON.stringify(said))
      await sleep(100)
    }
  }
  const batch = async (operations: object[]) => {
    const { results } = await call('many', 'POST', '/api/batch', { operations })
    return (results as Array<{ status: number, body: Record<string, string> }>)
  }
  const firsts = (await batch(Array.from({ length: Math.ceil(ends * scale) }, () => ({ op: 'pass', body: { task: 't' } })))).map(({ body }) => body.handoff_id!)
  await batch(firsts.map(id => ({ op: 'catch', id })))
  let behind = ''
  for (const id of firsts) {
    for (let n = 0; n < each; n += perBatch) {
      const passed = await batch(Array.from({ length: perBatch }, () => ({ op: 'pass', body: { task: 't', after: [id] } })))
      behind = passed.at(-1)!.body.handoff_id ?? behind
    }
  }
  const first = (await call('only', 'POST', '/api/pass', { task: 't' })).handoff_id as string
  await call('only', 'GET', `/api/catch/${first}`)
  const waits = (await call('only', 'POST', '/api/pass', { task: 't', after: [first] })).handoff_id as string

  await batch(firsts.map(id => ({ op: 'done', id, body: {} })))
  const began = performance.now()
  await call('only', 'POST', `/api/done/${first}`, {})
  const passes: number[] = []
  let only = NaN
  for (;;) {
    const asked = performance.now()
    await call('only', 'POST', '/api/pass', { task: 't' })
    passes.push(performance.now() - asked)
    if (Number.isNaN(only) && !('blocked_by' in await call('only', 'GET', `/api/status/${waits}`))) only = performance.now() - began
    if (!Number.isNaN(only) && !('blocked_by' in await call('many', 'GET', `/api/status/${behind}`))) break
    await sleep(20)
  }
  return { only, all: performance.now() - began, passes }
}
