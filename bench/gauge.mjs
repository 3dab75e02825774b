// Preloaded into a replica to measure its memory: on request it reports the memory before and after a garbage collection. Plain
// JavaScript, because a TypeScript loader in that process would be measured too.
process.on('message', () => {
  const asIs = process.memoryUsage()
  globalThis.gc()
  process.send({ asIs, collected: process.memoryUsage() })
})
// This channel must not keep the process alive.
process.channel.unref()
