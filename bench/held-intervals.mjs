// Preloaded into a service whose Redis is counted: on request its intervals don't fire, so that what it asks by the clock isn't counted. Before and
// between they do: a service that found its slow Redis away has to look again, which no-intervals.mjs would never let it.
const { setInterval } = globalThis
/** Shorter ones (ms) ask Redis nothing, and requests wait for some of them: those that are shed while the event loop is late. */
const shortest = 50
let areHeld = false
process.on('message', order => {
  areHeld = order === 'hold'
  process.send({})
})
// This channel must not keep the process alive.
process.channel.unref()

globalThis.setInterval = (callback, delay, ...args) =>
  setInterval((...given) => { if (!areHeld || delay < shortest) callback(...given) }, delay, ...args)
