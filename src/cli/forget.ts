import { Failure, print } from '../clients/typescript/command/output.ts'
import { loadConfig } from '../config.ts'
import { isId, tagOf } from '../core/ids.ts'
import { printJson } from './output.ts'
import { withStore } from './redis.ts'

/**
 * `handoff decisions forget`: removes the notes, tasks and questions of what people decided on a handoff. Who decided
 * what and when stays, for as long as decisions are kept. @returns the exit status
 */
export async function forget (id: string, { tenant, json }: { tenant: string, json: boolean }): Promise<number> {
  const config = loadConfig()
  const done = isId(id)
    ? await withStore(config, config.replicas, store => store.decisions.forget({ tenant, id, tag: tagOf(id) }))
    : null
  if (done === null) throw new Failure(`tenant ${tenant} has no decision on this handoff: see handoff decisions`)
  const { decisions, texts } = done
  if (json) printJson({ handoff_id: id, decisions, forgotten: texts })
  else print(`forgotten: the texts of ${texts} of ${decisions} ${decisions === 1 ? 'decision' : 'decisions'}`)
  return 0
}
