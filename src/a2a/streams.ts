import { setTimeout as sleep } from 'node:timers/promises'
import { Problem, Unavailable } from '../core/errors.ts'
import { keepAlive } from '../handoffs/wait/streams.ts'
import type { Stream } from '../handoffs/wait/streams.ts'
import type { TaskChange, TaskParts, TaskSeen } from '../store/tasks.ts'
import { artifactsOf } from './artifacts.ts'
import { changedStatus, isTerminal } from './status.ts'
import { contextOfTask } from './task.ts'

/** How long a stream waits before it asks Redis again, when Redis is away, in milliseconds. */
const pauseWhileAway = 1000

/** How a stream reads its task: all that changed after a number. Null once the task is gone. */
type ReadChanges = (parts: TaskParts) => Promise<TaskSeen | null>

/**
 * The StreamResponses of a task, JSON texts, from a change on; undefined for a comment, which says that nothing
 * changed. The texts are the same at every replica: they are made of the changes as the scripts noted them.
 */
export async function * taskUpdates (
  task: string, after: number, stream: Stream, read: ReadChanges
): AsyncGenerator<Buffer | undefined> {
  let lastSent = performance.now()
  while (!stream.isOver) {
    stream.begin()
    const seen = await readUnlessAway(read, after)
    if (seen === null || stream.isOver) return
    for (const change of seen?.changes ?? []) {
      for (const text of updatesOf(task, change, seen!)) yield text
      after = change.number
      lastSent = performance.now()
      if (isTerminal(change.state)) return
    }
    const untilComment = () => lastSent + keepAlive - performance.now()
    // A comment needs no look: whoever changes the task wakes its streams.
    const isQuiet = async () => seen !== undefined && !await stream.sleep(untilComment())
    while (untilComment() <= 0 || await isQuiet()) {
      if (stream.isOver) return
      yield undefined
      lastSent = performance.now()
    }
  }
}

/** @returns undefined while Redis is away; null if there is nothing to read any more, or the key has ended */
async function readUnlessAway (read: ReadChanges, after: number): Promise<TaskSeen | null | undefined> {
  try {
    return await read({ texts: 'most', after })
  } catch (error) {
    if (!(error instanceof Unavailable) && !(error instanceof Problem && error.code === 'unavailable')) return null
    await sleep(pauseWhileAway)
    return undefined
  }
}

/** What a change tells: on the end the artifacts, then the status. */
function updatesOf (task: string, change: TaskChange, seen: TaskSeen): Buffer[] {
  const context = contextOfTask(seen)
  const ids = `"taskId":"${task}","contextId":"${context}"`
  const because = change.what === 'expired' && change.said !== null ? `,"expiredBecause":${change.said}` : ''
  const metadata = `"metadata":{"handoff":{"handoffId":"${change.handoff}","sequence":${change.number}${because}}}`
  const artifacts = change.what === 'done' ? artifactsOf(seen.result) : []
  return [
    ...artifacts.map(artifact => Buffer.concat([
      Buffer.from(`{"artifactUpdate":{${ids},"artifact":`), artifact, Buffer.from(`,"lastChunk":true,${metadata}}}`)
    ])),
    Buffer.from(`{"statusUpdate":{${ids},"status":${changedStatus(task, context, change, seen)},${metadata}}}`)
  ]
}
