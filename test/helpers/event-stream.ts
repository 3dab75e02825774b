import { once } from 'node:events'
import { request as ask } from 'node:http'
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Test } from 'tap'

/** A frame of a stream of server-sent events, as its lines say it. */
export interface Frame { id?: string, event?: string, data?: string, comment?: string, retry?: string }

export interface OpenedStream {
  request: ClientRequest
  response: IncomingMessage
  /** What came so far, whole frames alone. */
  frames: Frame[]
  /** Resolves when it has ended, in whatever way. */
  ended: Promise<void>
  close (): void
}

/** Opens a stream of events, and reads it. @param query with its question mark */
export async function openStream (t: Pick<Test, 'teardown'>, port: number, secret: string, query = '', lastEventId?: string): Promise<OpenedStream> {
  const headers = { accept: 'text/event-stream', authorization: `Bearer ${secret}`, ...lastEventId !== undefined && { 'last-event-id': lastEventId } }
  const request = ask({ host: '127.0.0.1', port, path: `/api/events${query}`, headers, agent: false })
  t.teardown(() => request.destroy())
  request.end()
  const [response] = await once(request, 'response') as [IncomingMessage]
  const frames: Frame[] = []
  let rest = ''
  response.setEncoding('utf8').on('data', (some: string) => {
    const blocks = (rest + some).split('\n\n')
    rest = blocks.pop()!
    frames.push(...blocks.map(frameOf))
  })
  // One that is cut fails, and 'close' follows.
  response.on('error', () => {})
  const ended = new Promise<void>(resolve => response.once('close', resolve))
  return { request, response, frames, ended, close: () => request.destroy() }
}

function frameOf (block: string): Frame {
  return Object.fromEntries(block.split('\n').map(line => [line.slice(0, line.indexOf(':')) || 'comment', line.slice(line.indexOf(':') + 1).trim()]))
}

/** The ids of the events in it. */
export function idsIn (frames: readonly Frame[]): string[] {
  return frames.flatMap(({ id, data }) => id !== undefined && data !== undefined ? [id] : [])
}
