/**
 * A program that uses the client of agents as an agent would, run by others/package.smoke.test.ts on runtimes other than Node: exact numbers, waiting,
 * a worker with heartbeats, a signal that ends many calls, servers that don't answer, events. It prints what it saw as JSON.
 */
import { HandoffClient, isHandoffError, rawJson } from 'agent-handoff-client'

const [silent] = process.argv.slice(2)
const client = new HandoffClient()
const saw = {}
const codeOf = call => call.then(() => 'no error', error => isHandoffError(error) ? error.code : String(error))

const { handoff_id: id } = await client.pass({ task: 'x', output: rawJson('{"n":9007199254740993}') })
saw.exact = (await client.catch(id)).text.includes('9007199254740993')
const waiting = client.waitFor(id, 'done')
await client.done(id, { answer: 42 })
saw.result = (await waiting).result
saw.again = await codeOf(client.done(id, { answer: 43 }))

const own = new AbortController()
const work = await client.pass({ task: 'work', to: 'runtimes', heartbeat_within: 5 })
await client.work('runtimes', async ({ task }, { heartbeat }) => {
  await heartbeat({ progress: { percent: 50 } })
  own.abort()
  return { task }
}, { signal: own.signal })
saw.worked = (await client.status(work.handoff_id)).status

const all = new AbortController()
const waits = Array.from({ length: 20 }, () => codeOf(client.catchNext({ inbox: 'empty', wait: 30, signal: all.signal })))
setTimeout(() => all.abort(), 100)
saw.aborted = [...new Set(await Promise.all(waits))]

saw.closed = await codeOf(new HandoffClient({ baseUrl: 'http://127.0.0.1:1', retryFor: 300 }).status('x'))
saw.silent = await codeOf(new HandoffClient({ baseUrl: silent, retryFor: 300, attemptTimeout: 100 }).status('x'))

const events = client.events({ after: '0-0' })[Symbol.asyncIterator]()
saw.event = (await events.next()).value.type
await events.return()
console.log(JSON.stringify(saw))
