import { once } from 'node:events'
import { createServer, type ListenOptions, type Server } from 'node:net'
import { randomInt } from 'node:crypto'
import type { Host } from './process.ts'

/**
 * Below Linux's ephemeral ports, so that while a server is down between its kill and its restart no outgoing connection can get its
 * port.
 */
const range = [12_000, 32_000] as const

const given = new Set<number>()

/** A port for a server that keeps it over restarts: free now, and never returned twice, neither by this process nor by others beside it. */
export async function freePort (host: Host): Promise<number> {
  while (true) {
    const port = randomInt(...range)
    if (given.has(port)) continue
    given.add(port)
    // A new namespace has nothing on its ports except what this process puts there.
    if (host.namespace !== undefined || (await isFree(port, host.address) && await reserve(port))) return port
  }
}

async function isFree (port: number, address: string): Promise<boolean> {
  const server = await listening({ port, host: address })
  if (server === undefined) return false
  server.close()
  await once(server, 'close')
  return true
}

/**
 * Test files run several at once, and a server binds its port only some time after it was found free. A name in Linux's abstract namespace
 * belongs to one process, and is free again when that ends (unix(7)).
 * @returns whether no other process has it
 */
async function reserve (port: number): Promise<boolean> {
  if (process.platform !== 'linux') return true
  const server = await listening({ path: `\0handoff-test-port-${port}` })
  server?.unref()
  return server !== undefined
}

async function listening (where: ListenOptions): Promise<Server | undefined> {
  const server = createServer()
  try {
    await once(server.listen(where), 'listening')
    return server
  } catch {
    return undefined
  }
}
