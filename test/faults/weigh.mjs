// For node's --import, with --expose-gc: on SIGUSR2 the process collects its garbage and prints what it then holds, in bytes.
process.on('SIGUSR2', () => {
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external, rss } = process.memoryUsage()
  console.log(JSON.stringify({ held: heapUsed + external, rss }))
})
