import type { Redis } from 'ioredis'
import { until } from '../helpers/until.ts'
import { usual } from './checker.ts'
import { sweepRound } from './index-checks.ts'
import { dumpRedis } from './redis-state.ts'

/**
 * After an outage the sweep reaches what came due meanwhile within this long (ms): its open calls are given up (2 s), a disconnected
 * sweeper may still hold the lease (1.5 s), and a round takes 2.5 s.
 */
const sweepAfterOutage = 6000

/** Resolves when everything that came due during an outage has been swept, or should have been: the checker reports what is left. */
export async function untilSwept (masters: readonly Redis[], prefix = 'handoff'): Promise<void> {
  const look = async () => {
    const { due, from } = await dumpRedis(masters, prefix)
    return due.every(({ score }) => score > from - sweepRound - usual.slack)
  }
  await until(look, sweepAfterOutage).catch(() => {})
}
