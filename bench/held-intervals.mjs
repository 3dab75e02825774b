// Preloaded into a service whose Redis is counted: on request its intervals and rounds don't fire, so that what it asks by the clock isn't counted. Before and
// between they do: a service that found its slow Redis away has to look again, which no-intervals.mjs would never let it.
const { setInterval, setTimeout } = globalThis
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
/** A round that is held asks again: it makes the timer of the next one itself. */
const whenFree = (callback, delay) => function nextRound () {
  if (areHeld) setTimeout(nextRound, delay).unref()
  else callback()
}
globalThis.setTimeout = Object.defineProperties(
  (callback, delay, ...args) => setTimeout(callback.name === 'nextRound' ? whenFree(callback, delay) : callback, delay, ...args),
  Object.getOwnPropertyDescriptors(setTimeout))
