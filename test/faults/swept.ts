import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { usual } from './checker.ts'
import { clock } from './history.ts'
import { sweepRound } from './index-checks.ts'
import { dumpRedis, snapshotRedis } from './redis-state.ts'
import type { RedisState } from './redis-state.ts'

/**
 * After an outage the sweep reaches what came due meanwhile within this long (ms): its open calls are given up (2 s), a disconnected
 * sweeper may still hold the lease (1.5 s), and a round takes 2.5 s.
 */
const sweepAfterOutage = 6000
const betweenLooks = 300

/** Resolves when everything that came due during an outage has been swept, or should have been. @returns the state then: the checker reports what is left */
export async function untilSwept (masters: readonly Redis[], prefix = 'handoff', sweep = sweepRound): Promise<RedisState> {
  const isSwept = ({ due, from }: RedisState) => due.every(({ score }) => score > from - sweep - usual.slack)

  for (const end = clock() + sweepAfterOutage; ; await sleep(betweenLooks)) {
    // A snapshot holds the sweep up, so there is none before it has caught up.
    if (!isSwept(await dumpRedis(masters, prefix)) && clock() < end) continue
    const state = await snapshotRedis(masters, prefix)
    if (isSwept(state) || clock() > end) return state
  }
}
