// A process that works on a handoff, for tests that kill it. Its arguments: the service's address, its key, the handoff's id, and `goes on`
// for one that is never done, or `takes over` for one that waits until that handoff has a successor and does that one. It prints each
// answer, a line of JSON.
import { setTimeout as sleep } from 'node:timers/promises'

const [address, key, id, what] = process.argv.slice(2) as [string, string, string, 'goes on' | 'takes over']

async function ask (method: 'GET' | 'POST', path: string): Promise<any> {
  const answer = await fetch(`${address}${path}`, { method, headers: { authorization: `Bearer ${key}` } })
  const body = await answer.json()
  process.stdout.write(`${JSON.stringify(body)}\n`)
  return body
}

if (what === 'goes on') {
  await ask('GET', `/api/catch/${id}`)
  for (;;) {
    await ask('POST', `/api/heartbeat/${id}`)
    await sleep(500)
  }
}
const { reissued_as: successor } = await ask('GET', `/api/status/${id}?wait=60`)
await ask('GET', `/api/catch/${successor}?wait=60`)
await ask('POST', `/api/done/${successor}`)
