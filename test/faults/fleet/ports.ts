import { once } from 'node:events'
import { createServer } from 'node:net'
import { randomInt } from 'node:crypto'
import type { Host } from './process.ts'

/**
 * Below Linux's ephemeral ports, so that while a server is down between its kill and its restart no outgoing connection can get its
 * port.
 */
const range = [12_000, 32_000] as const

const given = new Set<number>()

/** A port for a server that keeps it over restarts: free now, and never returned twice by this process. */
export async function freePort (host: Host): Promise<number> {
  while (true) {
    const port = randomInt(...range)
    if (given.has(port)) continue
    given.add(port)
    // A new namespace has nothing on its ports except what this process puts there.
    if (host.namespace !== undefined || await isFree(port, host.address)) return port
  }
}

async function isFree (port: number, address: string): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, address)
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
    return true
  } catch {
    return false
  }
}
