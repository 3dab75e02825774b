// For node's --import, with --expose-gc: on SIGWINCH (SIGUSR2 would stop the service) the process collects garbage and prints its memory in bytes,
// what keeps its event loop alive, by kind, and its sockets: those that it accepted and those that it opened.
import { Socket } from 'node:net'

let weighed = 0

process.on('SIGWINCH', () => {
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external, rss } = process.memoryUsage()
  const resources = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  const sockets = process._getActiveHandles().filter(handle => handle instanceof Socket && handle.remotePort !== undefined)
  const accepted = sockets.filter(({ server }) => server).length
  console.log(JSON.stringify({ weighed: ++weighed, held: heapUsed + external, rss, accepted, opened: sockets.length - accepted, resources }))
})
