/**
 * BullMQ without HTTP, on a Redis with our settings: producers and a worker in this process, as its documentation shows them. A producer adds a job,
 * or several with `addBulk`, and the next when they are completed. The `Worker` has default settings; when it completes a job it gets the next one
 * in the same call. Completed jobs are removed. Run it with child.ts; STORE_URL says where Redis is.
 */
import { isDeepStrictEqual } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, Worker } from 'bullmq'
import { doneBody, passBodyOf } from '../load.ts'
import type { LoadResult } from '../load.ts'
import { percentile } from '../report.ts'

/** Handoffs from add to completion by so many producers; or jobs at a fixed rate for a worker that waits, which says how long each took to get there. */
export type Order = { do: 'handOff', bytes: number, producers: number, atOnce: number, seconds: number } | { do: 'wake', perSecond: number, seconds: number, concurrency: number }

type Data = { body: unknown } | { sent: number }

const name = 'handoffs'
const connection = { url: process.env.STORE_URL as string }
const { output } = JSON.parse(doneBody) as { output: object }

const queue = new Queue<Data>(name, { connection, defaultJobOptions: { removeOnComplete: true } })
/** Called with what the worker gets. */
let caught: (data: Data) => void = () => {}
/** By the producers' numbers, which are the jobs' names: called when one of its jobs is completed. */
let completed: Array<() => void> = []
const worker = new Worker<Data>(name, async ({ data }) => {
  caught(data)
  return output
}, { connection })
worker.on('completed', job => completed[Number(job.name)]?.())
// What a listener throws BullMQ catches.
for (const event of ['failed', 'error'] as const) worker.on(event, (...said: unknown[]) => { process.nextTick(() => { throw said.find(one => one instanceof Error) }) })

process.once('disconnect', () => process.exit())
process.on('message', async (order: Order) => process.send?.(order.do === 'handOff' ? await handOff(order) : await wake(order)))

async function handOff ({ bytes, producers, atOnce, seconds }: Order & { do: 'handOff' }): Promise<LoadResult> {
  worker.concurrency = producers * atOnce
  const body: unknown = JSON.parse(passBodyOf(bytes))
  const times: number[] = []
  caught = data => {
    caught = () => {}
    if (!isDeepStrictEqual(data, { body })) throw new Error('what the worker gets differs from what was added')
  }
  const begin = performance.now()
  const produce = async (producer: number) => {
    const jobs = Array.from({ length: atOnce }, () => ({ name: String(producer), data: { body } }))
    while (performance.now() < begin + seconds * 1000) {
      const sent = performance.now()
      let left = atOnce
      // Before they are added: the worker may be faster than the answer to that.
      const all = new Promise<void>(resolve => {
        completed[producer] = () => {
          times.push(performance.now() - sent)
          if (--left === 0) resolve()
        }
      })
      await (atOnce === 1 ? queue.add(String(producer), { body }) : queue.addBulk(jobs))
      await all
    }
  }
  await Promise.all(Array.from({ length: producers }, (_, producer) => produce(producer)))
  const perSecond = times.length / (performance.now() - begin) * 1000
  return { requests: times.length, perSecond, p50: percentile(times, 0.5), p99: percentile(times, 0.99), p999: percentile(times, 0.999), faults: 0 }
}

/** @returns each one's milliseconds */
async function wake ({ perSecond, seconds, concurrency }: Order & { do: 'wake' }): Promise<number[]> {
  worker.concurrency = concurrency
  completed = []
  const times: number[] = []
  caught = data => { if ('sent' in data) times.push(performance.now() - data.sent) }
  const total = perSecond * seconds
  const begin = performance.now()
  const under: Array<Promise<unknown>> = []
  for (let number = 0; number < total; number++) {
    while (performance.now() < begin + number * 1000 / perSecond) await sleep(1)
    under.push(queue.add('wake', { sent: performance.now() }))
  }
  await Promise.all(under)
  for (let tries = 0; times.length < total; tries++) {
    if (tries === 1000) throw new Error(`${total} were added, and ${times.length} caught`)
    await sleep(10)
  }
  return times
}
