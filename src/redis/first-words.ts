import type { Redis } from 'ioredis'
import type { Socket } from 'node:net'

/** How long a new connection waits for Redis's first words, in milliseconds: Redis says at once why it lets nobody in. */
const quietFor = 200
/** The longest that a connection is kept from ioredis, which then waits for it with its own timeouts, in milliseconds. */
const heldFor = 500

/** A part of ioredis's connector. It emits `firstError` of a stream that is closed when it gets it. */
interface Connector {
  firstError: Error | undefined
  connect (emit: unknown): Promise<Socket>
}

/** The other end closed the connection. */
export function isCut ({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNRESET' || code === 'EPIPE'
}

/**
 * Tells Redis's own words where it closes a new connection, as at maxclients. ioredis writes as soon as it is connected; then the reset hides
 * what Redis said. So an attempt that follows such a reset listens before anything is written, and its error has Redis's words. It is the
 * attempt that ioredis makes anyway, to the same address and with the same TLS, so a Redis without a free place gets no more connections.
 * A connection that was in use and broke isn't listened to: the way back from an outage is as fast as before.
 */
export function hearFirstWords (redis: Redis): void {
  const { connector } = redis as unknown as { connector: Connector }
  const connect = connector.connect.bind(connector)
  let words: Error | undefined
  let listens = false
  redis.on('error', (error: Error) => { listens = error === words || (redis.status !== 'ready' && isCut(error)) })
  connector.connect = (emit: unknown) => {
    const opened = connect(emit)
    return listens ? opened.then(listen) : opened
  }

  async function listen (stream: Socket): Promise<Socket> {
    connector.firstError = undefined
    const said = await firstWords(stream)
    if (said !== '') {
      words = new Error(said)
      stream.destroy()
      connector.firstError = words
    }
    return stream
  }
}

/** What a server says before it is asked; empty if it says nothing, as one that lets us in. */
function firstWords (stream: Socket): Promise<string> {
  return new Promise(resolve => {
    let heard = ''
    const listener = (chunk: Buffer) => {
      heard += chunk.toString('latin1')
      if (heard.includes('\n') || heard.length > 1000) end()
    }
    const end = () => {
      clearTimeout(tooLong)
      clearTimeout(quiet)
      stream.off('data', listener).off('close', end).off('connect', connected).off('secureConnect', connected)
      resolve(heard.replace(/^-/, '').split('\r\n')[0]!.slice(0, 1000))
    }
    const connected = () => {
      clearTimeout(quiet)
      quiet = setTimeout(end, quietFor)
    }
    const tooLong = setTimeout(end, heldFor)
    let quiet: NodeJS.Timeout | undefined
    stream.on('data', listener).on('close', end).on('connect', connected).on('secureConnect', connected)
    // ioredis adds its own listener only when it gets the stream.
    stream.on('error', () => {})
  })
}
