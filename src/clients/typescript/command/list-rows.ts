import type { ListedHandoff } from '../index.ts'
import { harmless, span } from './output.ts'

/** Lists for people: a line a handoff, which fits the terminal. */

const titles = ['id', 'status', 'to', 'by', 'since', '']
const gap = 2
/** Characters of a line where standard output is no terminal, and the fewest where it is one. */
const [usual, fewest] = [160, 80]
/** The most of a name, on a narrow terminal and on a wide one. */
const names = { narrow: 10, wide: 20 }

/**
 * Makes lines of handoffs, page by page. The first page decides how wide the columns are, so that the others need not
 * be known; the title is above it.
 * @param clock the time there, in milliseconds
 */
export function rowsOf (clock: () => number): (page: readonly ListedHandoff[]) => string {
  const line = Math.max(fewest, process.stdout.columns ?? usual)
  const max = [25, 9, ...Array<number>(2).fill(line < 120 ? names.narrow : names.wide), 7]
  let widths: number[] | undefined
  return page => {
    const cells = page.map(handoff => cellsOf(handoff, clock()))
    const isFirst = widths === undefined
    widths ??= max.map((width, column) =>
      Math.min(width, Math.max(...[titles, ...cells].map(row => row[column]!.length))))
    const rest = line - widths.reduce((sum, width) => sum + width + gap, 0)
    const all = isFirst ? [titles, ...cells] : cells
    const lineOf = (row: string[]) => row.map((cell, column) => fitted(cell, widths![column] ?? rest)).join('  ')
    return all.map(row => lineOf(row).trimEnd()).join('\n')
  }
}

function cellsOf (handoff: ListedHandoff, now: number): string[] {
  const { handoff_id: id, status, to, passed_by: passedBy, caught_by: caughtBy, ended_by: endedBy } = handoff
  const since = handoff.ended_at ?? handoff.caught_at ?? handoff.created_at
  return [id, status, to ?? '-', endedBy ?? caughtBy ?? passedBy, age(Date.parse(since), now), remark(handoff)]
}

/** `59 min`, `2 d`: the largest unit. */
function age (time: number, now: number): string {
  return now - time < 1000 ? '0 s' : span(now - time).split(' ').slice(0, 2).join(' ')
}

/** How it ended, or what it is about now. */
function remark (handoff: ListedHandoff): string {
  const { error, reason, expired_because: because, progress, approval, blocked_by: open, available_at: from, task } =
    handoff
  if (error !== undefined) return [error.code, quoted(error.message)].filter(Boolean).join(' ')
  if (reason !== undefined) return quoted(reason)
  if (because !== undefined) return because
  if (handoff.cancel_requested_at !== undefined) return 'asked to stop'
  if (handoff.ask !== undefined) return 'waits for an answer'
  if (progress?.message !== undefined) return quoted(progress.message)
  if (approval?.state === 'waiting') return 'waits for a person'
  if (open !== undefined) return `waits for ${open} other ${open === 1 ? 'handoff' : 'handoffs'}`
  if (handoff.status === 'pending' && from !== undefined) return `from ${from}`
  return task === undefined ? '' : quoted(task)
}

function quoted (text: string): string {
  return harmless(JSON.stringify(text))
}

/** Characters that take two places. */
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u

/** The text in so many places: padded, or cut with an ellipsis. */
function fitted (text: string, places: number): string {
  const characters = [...text]
  const widths = characters.map(one => wide.test(one) ? 2 : 1)
  const sum = widths.reduce((total, width) => total + width, 0)
  if (sum <= places) return text + ' '.repeat(places - sum)
  let [left, end] = [places - 1, 0]
  while (widths[end]! <= left) left -= widths[end++]!
  return `${characters.slice(0, end).join('')}…${' '.repeat(left)}`
}
