import { pass } from '../faults/sim/globals.ts'
import { Time } from '../faults/sim/time.ts'

/** Runs a story in virtual time, in which waiting takes none. Check what it returns, not within it: there the runner's clock stands still too. */
export async function inVirtualTime<T> (story: (time: Time) => Promise<T>): Promise<T> {
  const process = { name: 'service', skew: 0, pausedUntil: 0, dead: false }
  const time = new Time(process)
  let told: Promise<T> | undefined
  let isOver = false
  time.after(0, process, () => {
    told = story(time)
    const end = () => { isOver = true }
    told.then(end, end)
  })
  await pass(time, () => isOver)
  if (!isOver) throw new Error('the story waits for something, and no timer is left')
  return told!
}
