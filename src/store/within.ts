/** Waits for the work, but no longer than so many milliseconds. */
export function within (milliseconds: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds)
    timer.unref()
    work.then(() => resolve(), reject).finally(() => clearTimeout(timer))
  })
}
