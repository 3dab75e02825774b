import { execFileSync } from 'node:child_process'
import type { Goal } from './contest.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { runWaiting, wakeUpsPerSecond } from './waiting-round.ts'
import type { WaitingFigures } from './waiting-round.ts'

/** How many other files a process may have open besides its waiters' sockets, generously. */
const otherFiles = 200
/**
 * The commands that replicas send whether or not anyone waits: the sweep, its lease, changes of keys, the subscriber's keep-alive, Redis's clock,
 * whether the service is ready and Redis writable (its rights are asked for with EVAL where the server doesn't have the script yet), and
 * the metrics of inboxes, and what the indexer puts right after a replica began to sweep.
 */
export const standing = ['EVALSHA sweep', 'EVALSHA lease', 'EVALSHA key-changes', 'PING', 'TIME', 'INFO', 'EVALSHA rights', 'EVALSHA probe', 'EVALSHA inboxes', 'EVALSHA scan', 'EVALSHA index', 'EVAL']

/** Allocated: Node's http alone takes 9.3 KB for such an answer and the end of its connection; bench/README.md, "Waiting", has the rest. */
const limits = { rss: 14_336, allocated: 24_576, p50: 2, p99: 15 }

/** Requests that wait on one replica: their memory, their calls to Redis, and how soon a done at another replica wakes them. */
export async function waiting (options: BenchOptions): Promise<Report> {
  const { rounds: count, seconds, waiters, say } = options
  refuseTooFewFiles(waiters)
  const redis = await benchRedis(say)
  const rounds: WaitingFigures[] = []
  try {
    for (let round = 1; round <= count; round++) {
      const figures = await runWaiting(redis, waiters, seconds)
      rounds.push(figures)
      say(`waiting: round ${round} of ${count}: ${figures.rss.toFixed(0)} bytes a waiter, woken in ${figures.fromSending.p50.toFixed(2)} ms`)
    }
  } finally {
    await redis.stop()
  }
  const where = circumstances(redis.version)
  const of = (figure: (round: WaitingFigures) => number) => median(rounds.map(figure))
  const goals: Goal[] = [
    { what: `memory a waiter, of ${waiters}, bytes of RSS`, atMost: limits.rss, measured: of(round => round.rss) },
    { what: 'bytes allocated a wake-up, where they wait', atMost: limits.allocated, measured: of(round => round.allocated) },
    { what: `${wakeUpsPerSecond} wake-ups a second among ${waiters} waiters: p50 from sending the done to the waiter’s answer, ms`, atMost: limits.p50, measured: of(round => round.fromSending.p50) },
    { what: 'p99 of that, ms', atMost: limits.p99, measured: of(round => round.fromSending.p99) },
  ]
  return {
    table: describe(of, rounds) +
      `\n${waiters} requests wait, each on its own handoff and socket; ${wakeUpsPerSecond} dones a second. Medians of ${count} rounds.\n` +
      `\n${caption(where)}\n`,
    figures: { ...where, goals, rounds: count, seconds, waiters, wakeUpsPerSecond, each: rounds },
  }
}

/** The service and its clients each have one file open per waiter, and node raises its limit as far as it may. */
function refuseTooFewFiles (waiters: number): void {
  const limit = execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim()
  if (limit === 'unlimited' || Number(limit) >= waiters + otherFiles) return
  throw new Error(`waiting: ${waiters} sockets in one process take more open files than this shell may have (${limit}): ` +
    `raise it with ulimit -Hn ${waiters + otherFiles}, or ask for fewer with --waiters`)
}

function describe (of: (figure: (round: WaitingFigures) => number) => number, rounds: readonly WaitingFigures[]): string {
  const bytes = (figure: 'rss' | 'rssCollected' | 'heap' | 'external') => of(round => round[figure]).toFixed(0)
  const time = (figure: (round: WaitingFigures) => number) => of(figure).toFixed(2)
  const commands = [...new Set(rounds.flatMap(round => Object.keys({ ...round.nobodyWaits, ...round.allWait })))]
  const perSecond = (names: readonly string[], when: 'nobodyWaits' | 'allWait') =>
    of(round => names.reduce((total, name) => total + (round[when][name] ?? 0), 0)).toFixed(1)
  const others = commands.filter(name => !standing.includes(name))
  const otherRow = `any other command a second${others.length > 0 ? ` (${others.join(', ')})` : ''}`
  return markdownTable(['', 'measured', 'goal'], [
    ['memory a waiter, bytes of RSS', bytes('rss'), String(limits.rss)],
    ['with all garbage collected', bytes('rssCollected'), ''],
    ['of that on the heap', bytes('heap'), ''],
    ['and beside it', bytes('external'), ''],
    [otherRow, perSecond(others, 'allWait'), '0'],
    ...standing.map(name => [`${name} a second (nobody waits: ${perSecond([name], 'nobodyWaits')})`, perSecond([name], 'allWait'), '']),
    ['p50 from sending the done to the waiter’s answer, ms', time(round => round.fromSending.p50), String(limits.p50)],
    ['p99', time(round => round.fromSending.p99), String(limits.p99)],
    ['p50 from the done’s answer to the waiter’s, ms', time(round => round.fromAnswer.p50), ''],
    ['p99', time(round => round.fromAnswer.p99), ''],
    ['p50 of the done itself, ms', time(round => round.done.p50), ''],
    ['p99', time(round => round.done.p99), ''],
    ['where they wait: bytes allocated a wake-up', of(round => round.allocated).toFixed(0), String(limits.allocated)],
    ['collections of young objects per thousand wake-ups', time(round => round.collections), ''],
    ['the longest of them, ms', time(round => round.longest), ''],
    ['CPU a wake-up, µs: where they wait', time(round => round.cpu.waitedOn), ''],
    ['where the done is', time(round => round.cpu.doneOn), ''],
    ['Redis', time(round => round.cpu.redis), ''],
  ])
}
