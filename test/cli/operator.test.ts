import t from 'tap'
import { asUser, denials, setUser } from '../helpers/acl.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { newPlace, pass } from '../helpers/handoffs.ts'
import { fleetStore, usedRedis } from '../helpers/redis.ts'

t.test('the operator’s user of deploy/redis/users.acl may do all that the command does', async t => {
  const redis = await usedRedis(t)
  await setUser(redis.admin, { user: 'handoff-operator', password: 'secret' })
  const env = { REDIS_URL: asUser(redis.url, 'handoff-operator', 'secret') }
  const { id } = parsed(await handoff(['keys', 'create', '--name', 'writer', '--scopes', 'pass', '--expires-in', '60s', '--json'], { env })) as { id: string }
  const place = newPlace()
  await pass(fleetStore(t, redis.url).handoffs, place)
  for (const asked of [['keys', 'list'], ['keys', 'rotate', id, '--grace', '60s'], ['keys', 'revoke', id], ['go-back'],
    ['inspect', place.id, '--tenant', place.tenant, '--payload'], ['list', '--tenant', place.tenant, '--failed', '--inbox', 'w', '--since', '1h'], ['list', '--tenant', place.tenant, '--label', 'a:b']]) {
    t.match(await handoff(asked, { env }), { code: 0, stderr: '' }, asked.join(' '))
  }
  const { stdout } = await handoff(['doctor', '--json'], { env })
  const seen = (JSON.parse(stdout) as { findings: Array<{ name: string, saw: string }> }).findings
  t.match(seen.find(({ name }) => name === 'rights'), { level: 'ok' })
  t.notOk(seen.some(({ name }) => name === 'unseen'), 'nothing is hidden from it')
  t.strictSame(await denials(redis.admin, 'handoff-operator'), [])
})
