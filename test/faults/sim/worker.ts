import { simulate } from './run.ts'

/** A process that simulates the seeds that crowd.ts sends it. */

export interface Share { from: number, to: number }
export interface Told { share: Share, operations: number, acknowledged: number, broken: Array<[seed: number, violations: string[]]> }

process.on('message', async (share: Share) => {
  const told: Told = { share, operations: 0, acknowledged: 0, broken: [] }
  for (let seed = share.from; seed < share.to; seed++) {
    const { violations, operations, acknowledged } = await simulate(seed)
    told.operations += operations
    told.acknowledged += acknowledged
    if (violations.length > 0) told.broken.push([seed, violations])
  }
  process.send?.(told)
})
