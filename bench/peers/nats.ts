/**
 * The peer with NATS JetStream: pass is a publish that waits for its acknowledgement, catch takes the consumer's next message, and done
 * acknowledges that and waits for the server's confirmation. The stream is a work queue in file storage, with explicit acknowledgements; the server
 * syncs files every two minutes, its default. Catch uses `consume()`, which fetches messages ahead: the documented fast way (`next()` asks the
 * server once per message). Messages fetched ahead count as delivered, so if the process dies they are stuck until their acknowledgement times out:
 * after a day, which is what the service gives a catcher. Run it as a process; STORE_URL says where the server is.
 */
import { AckPolicy, RetentionPolicy, StorageType, jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { JsMsg } from '@nats-io/jetstream'
import { connect, nanos } from '@nats-io/transport-node'
import { serve } from './app.ts'
import type { Passed } from './app.ts'
import { Taken } from './taken.ts'

const stream = 'handoffs'
const subject = 'handoff'
const day = 86_400_000

const connection = await connect({ servers: process.env.STORE_URL as string })
const manager = await jetstreamManager(connection)
await manager.streams.add({ name: stream, subjects: [subject], retention: RetentionPolicy.Workqueue, storage: StorageType.File })
await manager.consumers.add(stream, { durable_name: 'catcher', ack_policy: AckPolicy.Explicit, ack_wait: nanos(day), max_ack_pending: -1 })
const client = jetstream(connection)
const messages = (await (await client.consumers.get(stream, 'catcher')).consume())[Symbol.asyncIterator]()
const taken = new Taken<JsMsg>()

await serve({
  async pass (passed) {
    const { seq } = await client.publish(subject, JSON.stringify(passed))
    return String(seq)
  },
  async catch (id, agent) {
    const message = await taken.take(id, agent, async () => (await messages.next()).value as JsMsg)
    return message?.json<Passed>() ?? null
  },
  async done (id, agent) {
    const message = taken.finish(id, agent)
    return message !== null && await message.ackAck()
  },
  async status (id) {
    const message = await manager.streams.getMessage(stream, { seq: Number(id) })
    return message === null ? null : { createdAt: message.json<Passed>().createdAt, caughtBy: taken.by(id) }
  },
  close: () => connection.close(),
})
