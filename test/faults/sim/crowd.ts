import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Stage } from '../scenario.ts'
import { simulate } from './run.ts'

/** What a simulating process is asked, and what it tells. */
interface Share { from: number, to: number }
interface Told { share: Share, acknowledged: number, broken: Array<[seed: number, violations: string[]]> }

/** The results of many seeds. */
export interface Tally {
  seeds: number
  acknowledged: number
  /** The violations, by seed. */
  broken: Map<number, string[]>
}

/**
 * Simulates the seeds from `from` up to but not including `to`, on so many processes. Ends early after `most` failing seeds.
 */
export async function simulateMany (t: Stage, from: number, to: number, { most = 20, processes = 2 }: { most?: number, processes?: number } = {}): Promise<Tally> {
  const tally: Tally = { seeds: 0, acknowledged: 0, broken: new Map() }
  const children: ChildProcess[] = []
  t.teardown(() => { for (const child of children) child.kill() })
  let next = from
  const began = performance.now()
  let told = began
  const shareOf = (): Share | null => {
    if (next >= to || tally.broken.size >= most) return null
    const share = { from: next, to: Math.min(to, next + 1000) }
    next = share.to
    return share
  }
  await Promise.all(Array.from({ length: processes }, () => new Promise<void>((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), ['simulate'], { execArgv: ['--import=tsx'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    children.push(child)
    const goOn = () => {
      const share = shareOf()
      if (share === null) child.disconnect()
      else child.send(share)
    }
    child.on('message', ({ share, acknowledged, broken }: Told) => {
      tally.seeds += share.to - share.from
      tally.acknowledged += acknowledged
      for (const [seed, violations] of broken) {
        tally.broken.set(seed, violations)
        t.comment(`SEED=${seed}\n${violations.join('\n')}`)
      }
      if (performance.now() - told > 10_000) {
        told = performance.now()
        t.comment(`simulation: ${tally.seeds} seeds in ${((told - began) / 1000).toFixed(0)} s, ${tally.broken.size} with violations`)
      }
      goOn()
    })
    child.on('error', reject)
    child.on('exit', code => code === 0 ? resolve() : reject(new Error(`a simulating process ended with ${code}`)))
    goOn()
  })))
  return tally
}

// Such a process.
if (process.argv[2] === 'simulate') {
  process.on('message', async (share: Share) => {
    const told: Told = { share, acknowledged: 0, broken: [] }
    for (let seed = share.from; seed < share.to; seed++) {
      const { violations, acknowledged } = await simulate(seed)
      told.acknowledged += acknowledged
      if (violations.length > 0) told.broken.push([seed, violations])
    }
    process.send!(told)
  })
}
