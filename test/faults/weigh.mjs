// For node's --import, with --expose-gc: on SIGWINCH (SIGUSR2 would stop the service) the process collects garbage and prints its memory in bytes,
// what keeps its event loop alive, by kind, its sockets, and how much its Maps and Sets hold, the largest by their first key.
import { Session } from 'node:inspector'
import { Socket } from 'node:net'

let weighed = 0

process.on('SIGWINCH', () => {
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage()
  const resources = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  const sockets = process._getActiveHandles().filter(handle => handle instanceof Socket && handle.remotePort !== undefined)
  const accepted = sockets.filter(({ server }) => server).length
  const { entries, largest } = collections()
  const opened = sockets.length - accepted
  console.log(JSON.stringify({ weighed: ++weighed, held: heapUsed + external, arrayBuffers, rss, accepted, opened, resources, entries, largest }))
})

/** Asked of the inspector, since nothing else finds them all. */
function collections () {
  const session = new Session()
  session.connect()
  const ask = (method, params) => {
    let answer
    session.post(method, params, (error, result) => { answer = error ?? result })
    return answer
  }
  const all = ['Map', 'Set'].map(kind => {
    const { result: { objectId } } = ask('Runtime.evaluate', { expression: `${kind}.prototype`, objectGroup: 'weighing' })
    const { objects } = ask('Runtime.queryObjects', { prototypeObjectId: objectId, objectGroup: 'weighing' })
    return ask('Runtime.callFunctionOn', { objectId: objects.objectId, functionDeclaration: String(sizes), returnByValue: true }).result.value
  })
  ask('Runtime.releaseObjectGroup', { objectGroup: 'weighing' })
  session.disconnect()
  return {
    entries: all.reduce((sum, { entries }) => sum + entries, 0),
    largest: all.flatMap(({ largest }) => largest).sort(([one], [other]) => other - one).slice(0, 20),
  }
}

/** Runs in the inspector, with all Maps or Sets as `this`, and the prototypes of those derived from them. */
function sizes () {
  const known = this.filter(one => !Object.hasOwn(one, 'constructor') && one.size > 0)
  const named = known.map(one => [one.size, String(typeof [...one.keys()][0] === 'object' ? 'an object' : [...one.keys()][0]).slice(0, 40)])
  return { entries: known.reduce((sum, { size }) => sum + size, 0), largest: named.sort(([a], [b]) => b - a).slice(0, 20) }
}
