// Loaded into a replica that is to be weighed: whenever it is asked, it tells what the process holds, and what it still holds
// when garbage is collected. Plain JavaScript: a loader for TypeScript in that process would be weighed with it.
process.on('message', () => {
  const asIs = process.memoryUsage()
  globalThis.gc()
  process.send({ asIs, collected: process.memoryUsage() })
})
// It is not for this channel that the process stays.
process.channel.unref()
