// Preloaded into the built service: says which of its functions and scripts run for a request, in the order of their calls. `watch` counts calls
// from then on. `mark` puts a breakpoint into each function that was called, whose condition notes it and never stops. `entered` answers with what
// ran since the last time. A function that does no more than return a part of its argument has no place for a breakpoint.
import { Session } from 'node:inspector'

const root = new URL('../../dist/', import.meta.url).href
const session = new Session()
session.connect()

/** A session of the same thread answers at once. */
function ask (method, params) {
  let answer
  session.post(method, params, (error, result) => {
    if (error !== null) throw new Error(`${method}: ${error.message}`)
    answer = result
  })
  return answer
}

const marked = []
let entered = []
globalThis.noteEntered = (at, script) => {
  entered.push(marked[at])
  if (script !== undefined) entered.push([`lua/${script}.lua`, script])
}

const orders = {
  watch () {
    ask('Profiler.enable')
    ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  },
  mark () {
    const { result } = ask('Profiler.takePreciseCoverage')
    ask('Profiler.disable')
    ask('Debugger.enable')
    for (const { url, scriptId, functions } of result) if (url.startsWith(root)) markIn(url.slice(root.length), scriptId, functions)
  },
  entered () {
    const those = entered
    entered = []
    return those
  },
}

function markIn (path, scriptId, functions) {
  const { scriptSource } = ask('Debugger.getScriptSource', { scriptId })
  const placeOf = offset => {
    const before = scriptSource.slice(0, offset).split('\n')
    return { scriptId, lineNumber: before.length - 1, columnNumber: before.at(-1).length }
  }
  const taken = new Set()
  for (const { functionName, ranges: [{ startOffset, endOffset, count }] } of functions) {
    if (count === 0) continue
    const [first] = ask('Debugger.getPossibleBreakpoints', { start: placeOf(startOffset), end: placeOf(endOffset) }).locations
    const place = first && `${first.lineNumber}:${first.columnNumber}`
    // A function that begins with another one has its place.
    if (first === undefined || taken.has(place)) continue
    taken.add(place)
    marked.push([`src/${path.replace(/\.js$/, '.ts')}`, functionName])
    const { lineNumber, columnNumber } = first
    // There a call is written to Redis, and with it its script.
    const script = path === 'redis/call.js' && functionName === 'toWritable' ? 'this.request.script.name' : 'undefined'
    ask('Debugger.setBreakpoint', { location: { scriptId, lineNumber, columnNumber }, condition: `noteEntered(${marked.length - 1}, ${script})` })
  }
}

process.on('message', order => process.send(orders[order]() ?? {}))
// This channel must not keep the process alive.
process.channel.unref()
