import { print } from '../clients/typescript/command/output.ts'
import { loadConfig } from '../config.ts'
import { printJson } from './output.ts'
import { withStore } from './redis.ts'

/**
 * Puts all live handoffs into the index that version 0.2.0 sweeps and lists. A replica of this version that still runs
 * takes them out again. So the command is for the time after the last one, and can be repeated.
 */
export async function goBack ({ json = false }: { json?: boolean }): Promise<void> {
  const config = loadConfig()
  const moved = await withStore(config, config.replicas, ({ indexer }) => indexer.goBack())
  if (json) return printJson({ moved })
  print(`${moved} live handoffs are where version 0.2.0 looks for them. Start its replicas now.`)
}
