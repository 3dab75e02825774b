/**
 * The peer with pg-boss on PostgreSQL: pass is `send`, catch is `fetch`, done is `complete`. Both have default settings: ten connections,
 * maintenance on, and PostgreSQL's default durability, so each operation is on disk before it is answered (Redis with `everysec` may lose a
 * second). pg-boss keeps completed jobs until it archives them. Run it as a process; STORE_URL says where PostgreSQL is.
 */
import PgBoss from 'pg-boss'
import type { Job } from 'pg-boss'
import { serve } from './app.ts'
import type { Passed } from './app.ts'
import { Taken } from './taken.ts'

const name = 'handoffs'
const boss = new PgBoss(process.env.STORE_URL as string)
boss.on('error', error => process.stderr.write(`pg-boss: ${error.message}\n`))
await boss.start()
await boss.createQueue(name)
const taken = new Taken<Job<Passed>>()

/** A fetch may find nothing although there are jobs: those it saw were taken meanwhile, and it doesn't see newer ones. */
async function next (): Promise<Job<Passed> | undefined> {
  for (let tries = 0; tries < 10; tries++) {
    const [job] = await boss.fetch<Passed>(name)
    if (job !== undefined) return job
  }
}

await serve({
  async pass (passed) {
    return await boss.send(name, passed) as string
  },
  async catch (id, agent) {
    const job = await taken.take(id, agent, next)
    return job?.data ?? null
  },
  async done (id, agent, output) {
    const job = taken.finish(id, agent)
    if (job !== null) await boss.complete(name, job.id, output ?? {})
    return job !== null
  },
  async status (id) {
    const job = await boss.getJobById<Passed>(name, id)
    return job === null ? null : { createdAt: job.data.createdAt, caughtBy: job.state === 'created' ? null : taken.by(id) }
  },
  close: () => boss.stop(),
})
