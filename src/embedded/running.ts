import { stat } from 'node:fs/promises'
import { whoAnswers } from './probe.ts'
import { openDataDir } from './data-dir.ts'
import type { DataDir } from './data-dir.ts'
import { EmbeddedError } from './programs.ts'

/** The running Redis of a service on `dataDir`. Creates nothing there. @throws {EmbeddedError} there is none */
export async function findRunning (dataDir: string): Promise<DataDir> {
  const none = new EmbeddedError(`REDIS_URL is unset, and no Redis runs on DATA_DIR ${dataDir}: set REDIS_URL, or start the service (npm start)`)
  if (await stat(dataDir).catch(() => undefined) === undefined) throw none
  const dir = await openDataDir(dataDir)
  if (await whoAnswers(dir.socket) !== 'nobody') return dir
  await dir.close()
  throw none
}
