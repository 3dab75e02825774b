// For node's --import, with --expose-gc: on SIGWINCH (SIGUSR2 would stop the service) the process collects garbage and prints its memory in bytes,
// what keeps its event loop alive, by kind, its sockets, and how much its Maps and Sets hold: the largest by their first key, and what has the name
// of a visitor's tenant (visits.ts) by the form of its key.
import { Socket } from 'node:net'
import { getHeapStatistics } from 'node:v8'
import { collections } from './collections.mjs'

let weighed = 0

process.on('SIGWINCH', () => {
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage()
  const { total_physical_size: pages, used_heap_size: used } = getHeapStatistics()
  const resources = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  const sockets = process._getActiveHandles().filter(handle => handle instanceof Socket && handle.remotePort !== undefined)
  const accepted = sockets.filter(({ server }) => server).length
  const opened = sockets.length - accepted
  const { entries, largest, named } = collections(/\bt-\d+-\d+-\d+\b/)
  const forms = {}
  for (const key of named) {
    const form = key.slice(0, 60).replace(/\{\w+\}/, '{}').replace(/\d+/g, '0')
    forms[form] = (forms[form] ?? 0) + 1
  }
  console.log(JSON.stringify({ weighed: ++weighed, held: heapUsed + external, arrayBuffers, rss, taken: rss - (pages - used), accepted, opened, resources, entries, largest: largest.slice(0, 20), forms }))
})
