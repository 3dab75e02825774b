/**
 * The peer with BullMQ, on a Redis with our settings: pass is `Queue.add`, catch is `Worker.getNextJob`, done is `Job.moveToCompleted`, as its
 * documentation describes under "Manually processing jobs", with the check for stalled jobs that belongs to it. Completed jobs are removed, which
 * is fast and keeps memory level. BullMQ makes the connections itself. A job's lock lasts as long as the service gives a catcher. Run it as a
 * process; STORE_URL says where Redis is.
 */
import { Queue, Worker } from 'bullmq'
import type { Job } from 'bullmq'
import { serve } from './app.ts'
import type { Passed } from './app.ts'
import { Taken } from './taken.ts'

const name = 'handoffs'
const token = 'catcher'
const connection = { url: process.env.STORE_URL as string }
const day = 86_400_000

const queue = new Queue<Passed>(name, { connection, defaultJobOptions: { removeOnComplete: true } })
const worker = new Worker<Passed>(name, null, { connection, lockDuration: day })
await worker.startStalledCheckTimer()
const taken = new Taken<Job<Passed>>()

await serve({
  async pass (passed) {
    const job = await queue.add('handoff', passed)
    return job.id as string
  },
  async catch (id, agent) {
    const job = await taken.take(id, agent, () => worker.getNextJob(token, { block: false }))
    return job?.data ?? null
  },
  async done (id, agent, output) {
    const job = taken.finish(id, agent)
    await job?.moveToCompleted(output, token, false)
    return job !== null
  },
  async status (id) {
    const job = await queue.getJob(id)
    // Not getState(), which searches the whole list of waiting jobs.
    return job === undefined ? null : { createdAt: job.data.createdAt, caughtBy: job.processedOn === undefined ? null : taken.by(id) }
  },
  close: () => Promise.all([worker.close(), queue.close()]),
})
