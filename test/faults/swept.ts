import type { Redis } from 'ioredis'
import { until } from '../helpers/until.ts'
import { usual } from './checker.ts'
import { sweepRound } from './index-checks.ts'
import { dumpRedis } from './redis-state.ts'

/**
 * After an outage the sweep gets to what came due meanwhile within this long (ms): what it had asked for is given up (2 s), a
 * sweeper that lost touch holds the lease (1.5 s), and a round takes 2.5 s.
 */
const sweepAfterOutage = 6000

/** Resolves when what came due during an outage has been swept, or ought to have been: what is left then the checker tells. */
export async function untilSwept (masters: readonly Redis[], prefix = 'handoff'): Promise<void> {
  const look = async () => {
    const { due, from } = await dumpRedis(masters, prefix)
    return due.every(({ score }) => score > from - sweepRound - usual.slack)
  }
  await until(look, sweepAfterOutage).catch(() => {})
}
