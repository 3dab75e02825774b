/**
 * Timestamps without their milliseconds, by second. Few seconds occur, and formatting this part is most of the cost of
 * a timestamp.
 */
const beginnings = new Map<number, string>()
const maxBeginnings = 100

/** A timestamp: ISO 8601, UTC, with milliseconds. */
export function iso (milliseconds: number): string {
  const second = Math.floor(milliseconds / 1000)
  let beginning = beginnings.get(second)
  if (beginning === undefined) {
    if (beginnings.size === maxBeginnings) beginnings.clear()
    beginning = new Date(second * 1000).toISOString().slice(0, -'000Z'.length)
    beginnings.set(second, beginning)
  }
  return `${beginning}${String(milliseconds - second * 1000).padStart(3, '0')}Z`
}
