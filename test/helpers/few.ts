/** Does it so many times, a few at a time, so that a service on a busy machine refuses none. */
export async function fewAtATime<T> (count: number, one: (n: number) => Promise<T>): Promise<T[]> {
  const all: T[] = []
  while (all.length < count) {
    const done = all.length
    all.push(...await Promise.all(Array.from({ length: Math.min(5, count - done) }, (_, n) => one(done + n))))
  }
  return all
}
