import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { clock } from './history.ts'
import { dumpRedis, snapshotRedis } from './redis-state.ts'
import type { Due, Hash, RedisState } from './redis-state.ts'
import type { Tolerance } from './steps.ts'

/** I7: after a sweep, the due indexes have exactly the live handoffs, at their deadline, or earlier if catch left that to the sweep. */

/** The sweep reaches a due handoff within this long (ms), on a machine that isn't busy. */
export const sweepRound = 3000

export interface SweepTolerance extends Pick<Tolerance, 'slack'> {
  /** Within this long the sweep reaches what is due (ms). */
  sweep: number
}

/**
 * After an outage the sweep reaches what came due meanwhile within this long (ms): its open calls are given up (2 s), a disconnected
 * sweeper may still hold the lease (1.5 s), and a round takes 2.5 s.
 */
const sweepAfterOutage = 6000
const looks = 20

/**
 * Resolves when everything that came due during an outage has been swept, or should have been.
 * @param isRight whether all else is right that takes a while @param within how long that may take (ms)
 * @returns the state then: the checker reports what is left
 */
export async function untilSwept (
  masters: readonly Redis[], prefix: string, { slack, sweep }: SweepTolerance, isRight: (state: RedisState) => boolean, within = sweepAfterOutage
): Promise<RedisState> {
  const isSwept = (state: RedisState) => state.due.every(({ score }) => score > state.from - sweep - slack) && isRight(state)
  for (const end = clock() + within; ; await sleep(within / looks)) {
    // A snapshot holds the sweep up, so there is none before it has caught up.
    if (!isSwept(await dumpRedis(masters, prefix)) && clock() < end) continue
    const state = await snapshotRedis(masters, prefix)
    if (isSwept(state) || clock() > end) return state
  }
}

/** @returns a sentence for each handoff that breaks I7, by its member (`tenant:id`) */
export function indexFaults (state: RedisState, tolerance: SweepTolerance): Array<{ member: string, sentence: string }> {
  const faults: Array<{ member: string, sentence: string }> = []
  const due = grouped(state.due, memberOf)
  const hashes = grouped(state.hashes, memberOf)
  for (const member of new Set([...due.keys(), ...hashes.keys()])) {
    const sentence = faultOf(due.get(member) ?? [], hashes.get(member) ?? [], state, tolerance)
    if (sentence !== null) faults.push({ member, sentence })
  }
  return faults
}

function faultOf (due: Due[], hashes: Hash[], { from, to }: RedisState, { slack, sweep }: SweepTolerance): string | null {
  if (hashes.length > 1) return `its hash is there ${hashes.length} times`
  if (due.length > 1) return `it is due ${due.length} times: ${due.map(({ tag, score }) => `{${tag}} at ${score}`).join(', ')}`
  const [hash] = hashes
  const [entry] = due
  const deadline = hash === undefined ? null : deadlineOf(hash)
  const question = hash === undefined || deadline === null ? null : openQuestion(hash)
  if (question !== null && question.expires + sweep + slack < from) return `its question was over at ${question.expires}, and ${Math.round(from - question.expires)} ms later it was still open`
  const earliest = Math.min(deadline ?? Infinity, entry?.score ?? Infinity)
  // Long overdue: the sweep has been there. Recently overdue, or during this read: the sweep may be there now.
  if (earliest + sweep + slack < from) {
    return deadline === null ? `it is not live, but due at ${entry?.score}` : `its deadline was ${earliest}, and ${Math.round(from - earliest)} ms later it was still live`
  }
  if (earliest <= to + slack) return null
  if (hash === undefined) return `it is due at ${entry?.score}, but has no hash`
  // The sweep goes on with what comes after it, and with its notes at what it waited for, at once or a second later.
  if (deadline === null && / W| A\w\/[1-9]/.test(hash.extra) && entry !== undefined && entry.score <= to + slack + 1000) return null
  if (deadline === null) return entry === undefined ? null : `it is ${statusIn(hash)}, but due at ${entry.score}`
  if (entry === undefined) return `it is live until ${deadline}, but not due`
  if (entry.tag !== hash.tag) return `its hash is in {${hash.tag}}, but it is due in {${entry.tag}}`
  return entry.score === deadline || isLeftBehind(hash, entry.score, deadline) ? null : `it is live until ${deadline}, but due at ${entry.score}`
}

/** When a live handoff expires, from its record (lua/lib/record.lua); null if it has ended. */
export function deadlineOf (hash: Hash): number | null {
  const words = hash.record.split(' ')
  const status = statusIn(hash)
  if (status === 'pending') return Number(words[3])
  return status === 'caught' ? Number(/ h(\d+)/.exec(hash.extra)?.[1] ?? words[7]) : null
}

/** The question that its record calls open; null if there is none. @property of p asks people, r the passer */
export function openQuestion ({ extra }: Pick<Hash, 'extra'>): { of: string, expires: number } | null {
  const found = / z[^/]+\/(\w)\/\d+\/(\d+)\/o/.exec(extra)
  return found === null ? null : { of: found[1]!, expires: Number(found[2]) }
}

/**
 * Catch leaves the score at the pickup deadline if that is earlier than the work's, and a heartbeat doesn't change the score. What is
 * delayed is due at the end of its delay.
 */
function isLeftBehind (hash: Hash, score: number, deadline: number): boolean {
  // What is blocked is looked at now and then.
  if (isBlockedRecord(hash.record)) return score <= deadline
  if (statusIn(hash) === 'pending') return score === Number(/ a(\d+)/.exec(hash.extra)?.[1])
  if (statusIn(hash) !== 'caught' || score > deadline) return false
  return score === Number(hash.record.split(' ')[3]) || / [hf]\d/.test(hash.extra)
}

/** A record with field x has a mark before its status. */
export function statusIn ({ record }: Pick<Hash, 'record'>): string {
  return record.replace(/^[2-5]:/, '').split(' ', 1)[0]!
}

/** Does it wait for others that it comes after? */
export function isBlockedRecord (record: string): boolean {
  return /^[35]:/.test(record)
}

const memberOf = ({ member }: { member: string }) => member

export function grouped<T> (all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const key = keyOf(one)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  return groups
}
