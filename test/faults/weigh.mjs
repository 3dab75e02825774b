// For node's --import, with --expose-gc: on SIGWINCH (SIGUSR2 would stop the service) the process collects garbage and prints its heap in bytes.
process.on('SIGWINCH', () => {
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external, rss } = process.memoryUsage()
  console.log(JSON.stringify({ held: heapUsed + external, rss }))
})
