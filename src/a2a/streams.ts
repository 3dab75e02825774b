import { setTimeout as sleep } from 'node:timers/promises'
import { Problem, Unavailable } from '../core/errors.ts'
import { keepAlive } from '../handoffs/wait/streams.ts'
import type { Stream } from '../handoffs/wait/streams.ts'
import type { TaskChange, TaskParts, TaskSeen } from '../store/tasks.ts'
import { artifactsOf } from './artifacts.ts'
import { changedStatus, isTerminal } from './status.ts'
import { contextOfTask } from './task.ts'
import type { TaskWithUrls } from './task.ts'

/** How long a stream waits before it asks Redis again, when Redis is away, in milliseconds. */
const pauseWhileAway = 1000

/** How a stream reads its task: all that changed after a number. Null once the task is gone. */
type ReadChanges = (parts: TaskParts) => Promise<TaskWithUrls | null>

/**
 * The StreamResponses of a task, JSON texts, from a change on; undefined for a comment, which says that nothing
 * changed. The texts are the same at every replica, but for files' URLs: they are made of the changes as the scripts
 * noted them.
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
      const artifacts = change.what === 'done' ? artifactsOf(seen!.result, seen!.fileUrls) : []
      for (const { text } of updatesOf({ task, context: contextOfTask(seen!) }, change, artifacts, seen!)) yield text
      after = change.number
      lastSent = performance.now()
      if (isTerminal(change.state)) return
    }
    const untilComment = () => lastSent + keepAlive - performance.now()
    // A comment needs no look: each change of the task wakes its streams.
    const isQuiet = async () => seen !== undefined && !await stream.sleep(untilComment())
    while (untilComment() <= 0 || await isQuiet()) {
      if (stream.isOver) return
      yield undefined
      lastSent = performance.now()
    }
  }
}

/** @returns undefined while Redis is away; null if there is nothing to read any more, or the key has ended */
async function readUnlessAway (read: ReadChanges, after: number): Promise<TaskWithUrls | null | undefined> {
  try {
    return await read({ texts: 'most', after })
  } catch (error) {
    if (!(error instanceof Unavailable) && !(error instanceof Problem && error.code === 'unavailable')) return null
    await sleep(pauseWhileAway)
    return undefined
  }
}

/** A StreamResponse of a change, and its number in the task's order. */
interface Update { sequence: number, text: Buffer }

/**
 * What a change tells: on the end the artifacts, then the status.
 * @param seen the task as it is now, if it was read @param isOmitted whether the artifacts are too long to be sent
 */
export function updatesOf (
  { task, context }: { task: string, context: string }, change: TaskChange, artifacts: readonly Buffer[],
  seen: TaskSeen | null, isOmitted = false
): Update[] {
  const ids = `"taskId":"${task}","contextId":"${context}"`
  const because = change.what === 'expired' && change.said !== null ? `,"expiredBecause":${change.said}` : ''
  const metadata = (sequence: number, more = '') =>
    `"metadata":{"handoff":{"handoffId":"${change.handoff}","sequence":${sequence}${because}${more}}}`
  // Nothing follows an end, so its artifacts can count on from its number.
  const sequence = change.number + artifacts.length
  return [
    ...artifacts.map((artifact, at) => ({
      sequence: change.number + at,
      text: Buffer.concat([
        Buffer.from(`{"artifactUpdate":{${ids},"artifact":`), artifact,
        Buffer.from(`,"lastChunk":true,${metadata(change.number + at)}}}`)
      ])
    })),
    {
      sequence,
      text: Buffer.from(`{"statusUpdate":{${ids},"status":${changedStatus(task, context, change, seen)},` +
        `${metadata(sequence, isOmitted ? ',"artifactsOmitted":true' : '')}}}`)
    }
  ]
}
