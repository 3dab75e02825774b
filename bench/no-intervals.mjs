// Preloaded into a server whose instructions are counted: its intervals never fire. What they do depends on time, not on requests. On a machine with
// twelve busy processes, where every one of them was due between any two requests, JavaScript per done was 1.12 times what it is on a quiet machine.
const { setInterval } = globalThis
/** The longest that node accepts (ms): 25 days. */
const longest = 2 ** 31 - 1

globalThis.setInterval = (callback, _delay, ...args) => setInterval(callback, longest, ...args)
