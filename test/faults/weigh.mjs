// For node's --import, with --expose-gc: on SIGWINCH (SIGUSR2 would stop the service) the process collects garbage and prints the bytes that it
// holds, and how many timers, sockets and the like keep its event loop alive.
let weighed = 0

process.on('SIGWINCH', () => {
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  console.log(JSON.stringify({ weighed: ++weighed, heap: heapUsed + external, handles: process.getActiveResourcesInfo().length }))
})
