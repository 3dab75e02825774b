import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { which } from '../../src/embedded/binary.ts'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback, run } from '../faults/fleet/process.ts'
import { scratchDir } from './processes.ts'
import { until } from './until.ts'

/** A vector's samples; a scalar is one without labels. */
export type Answer = Array<{ metric: Record<string, string>, value: [time: number, value: string] }>
export interface Alert { labels: Record<string, string>, annotations: Record<string, string>, state: 'pending' | 'firing' }

export interface Prometheus {
  /** @throws with Prometheus's message if the expression can't be evaluated */
  query (expr: string): Promise<Answer>
  /** The alerts that are pending or firing. */
  alerts (): Promise<Alert[]>
}

/** What is missing to run Prometheus, or null. */
export async function missingForPrometheus (): Promise<string | null> {
  for (const program of ['prometheus', 'promtool']) if (await which(program) === undefined) return program
  return null
}

/** Runs Prometheus until the test ends, on its own port and in its own directory. @param files by name; prometheus.yml is the configuration */
export async function startPrometheus (t: Test, files: Record<string, string>): Promise<Prometheus> {
  const dir = await scratchDir(t)
  await mkdir(join(dir, 'data'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text)
  const url = `http://127.0.0.1:${await freePort(loopback)}`
  const prometheus = run(loopback, 'prometheus', [`--config.file=${join(dir, 'prometheus.yml')}`, `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=${new URL(url).host}`, '--log.level=error'], { stdio: ['ignore', 'ignore', 'inherit'] })
  t.teardown(() => prometheus.kill())
  await until(async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok, 30_000)
  const ask = async (path: string) => {
    const answer = await (await fetch(url + path)).json() as { status: string, error?: string, data: unknown }
    if (answer.status !== 'success') throw new Error(answer.error)
    return answer.data
  }
  return {
    async query (expr) {
      const { resultType, result } = await ask(`/api/v1/query?query=${encodeURIComponent(expr)}`) as { resultType: string, result: unknown }
      return resultType === 'vector' ? result as Answer : [{ metric: {}, value: result as [number, string] }]
    },
    alerts: async () => (await ask('/api/v1/alerts') as { alerts: Alert[] }).alerts,
  }
}
