// Preloaded into a replica to measure it: on request it reports its memory before and after a garbage collection, or what was allocated and
// collected between two requests. Plain JavaScript, because a TypeScript loader in that process would be measured too.
import { GCProfiler, getHeapStatistics } from 'node:v8'

const used = () => getHeapStatistics().used_heap_size
let profiler
let before

const orders = {
  weigh () {
    const asIs = process.memoryUsage()
    globalThis.gc()
    return { asIs, collected: process.memoryUsage() }
  },
  count () {
    profiler = new GCProfiler()
    profiler.start()
    before = used()
    return {}
  },
  // What is there now, and what each collection took away, less what was there.
  counted () {
    let allocated = used() - before
    const { statistics } = profiler.stop()
    for (const { beforeGC, afterGC } of statistics) allocated += beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize
    const young = statistics.filter(({ gcType }) => gcType === 'Scavenge').map(({ cost }) => cost / 1000)
    return { allocated, collections: young.length, longest: Math.max(0, ...young) }
  },
}
process.on('message', order => process.send(orders[order]()))
// This channel must not keep the process alive.
process.channel.unref()
