import t from 'tap'
import { mostFields } from '../../src/cli/doctor/server.ts'
import { testApp } from '../helpers/app.ts'

t.test('a handoff that uses everything has as many fields as doctor counts on', async t => {
  const { call, dump } = await testApp(t)
  const body = { task: 'Count the rows', require_human: true, heartbeat_within: 60, max_attempts: 2, result_schema: { type: 'object' } }
  const { handoff_id: id } = (await call('alice', 'POST', '/api/pass', body)).json<{ handoff_id: string }>()
  const fields = async () => Object.entries(await dump()).filter(([key]) => key.endsWith(id)).map(([, kept]) => Object.keys((kept as { content: object }).content).sort().join(''))
  t.strictSame(await fields(), ['hprstx'])
  const steps: Array<Parameters<typeof call>> = [
    ['approver', 'POST', `/api/approve/${id}`, { note: 'Go ahead.' }],
    ['bob', 'GET', `/api/catch/${id}`],
    ['bob', 'POST', `/api/heartbeat/${id}`, { progress: { percent: 40 } }],
    ['alice', 'POST', `/api/cancel/${id}`, { reason: 'No longer needed.' }],
    ['bob', 'POST', `/api/fail/${id}`, { error: { message: 'Stopped.' } }],
  ]
  for (const step of steps) t.ok((await call(...step)).statusCode < 300, step[2])
  t.strictSame(await fields(), ['cdeghprsx'])
  t.equal('cdeghprsx'.length, mostFields)
})
