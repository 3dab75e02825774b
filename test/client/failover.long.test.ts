import t from 'tap'
import { startSentinelFleet } from '../faults/fleet/sentinel.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { HandoffClient } from '../../src/client/index.ts'

const secret = 'the-key-of-an-agent-0123456789'
const inbox = 'workers'
/** Handoffs that are passed before the master is killed, while it is away, and afterwards. */
const each = 100

t.test('work() goes on through the failover of a master and the kill of a replica: each handoff is worked on once, and done', async t => {
  const fleet = await startSentinelFleet(t, { options: ['--min-replicas-to-write', '1'] })
  const env = { REDIS_URL: fleet.url, API_KEYS: `alice:${secret}`, DURABILITY: 'replicas:1', DRAIN_DELAY: '0' }
  const [first, second] = await Promise.all([startServiceReplica(t, { env }), startServiceReplica(t, { env })])
  // In place of a balancer: each attempt goes to one of the replicas, by turns.
  let turn = 0
  const client = new HandoffClient({
    baseUrl: first.url,
    key: secret,
    retryFor: 60_000,
    fetch: (url, init) => fetch(turn++ % 2 === 0 ? url : url.replace(first.url, second.url), init),
  })
  const ids: string[] = []
  const pass = async (count: number) => {
    for (let index = 0; index < count; index++) ids.push((await client.pass({ task: 'x', output: { index: ids.length }, to: inbox, heartbeat_within: 30 })).handoff_id)
  }
  const worked = new Map<string, number>()
  const errors: unknown[] = []
  const enough = new AbortController()
  const working = client.work(inbox, ({ handoff_id: id, output }) => {
    worked.set(id, (worked.get(id) ?? 0) + 1)
    if (worked.size === 3 * each) enough.abort()
    return { seen: output }
  }, { concurrency: 8, signal: enough.signal, onError: error => { errors.push(error) } })

  await pass(each)
  const switched = fleet.switched()
  await (await fleet.master()).kill()
  await Promise.all([switched, pass(each)])
  second.kill()
  await pass(each)
  await working

  t.strictSame(errors, [])
  t.strictSame([...worked.keys()].sort(), ids.toSorted())
  t.ok([...worked.values()].every(times => times === 1))
  const { results } = await client.batch(ids.slice(0, each).map(id => ({ op: 'status', id })))
  t.ok(results.every(({ body }, index) => body.status === 'done' && (body.result as { seen: { index: number } }).seen.index === index))
  for (const id of ids.slice(each)) t.equal((await client.status(id)).status, 'done')
})
