import { refused } from '../clients/typescript/command/ask.ts'
import { showInboxes } from '../clients/typescript/command/inboxes.ts'
import type { InboxesOptions } from '../clients/typescript/command/inboxes.ts'
import { checkLimit, show } from '../clients/typescript/command/list.ts'
import type { ListOptions } from '../clients/typescript/command/list.ts'
import { UsageError } from '../clients/typescript/command/output.ts'
import { HandoffError } from '../clients/typescript/index.ts'
import type { ListWanted } from '../clients/typescript/index.ts'
import { loadConfig } from '../config.ts'
import { Problem, errorTable } from '../core/errors.ts'
import type { Fault } from '../core/errors.ts'
import { callerOf } from '../core/model.ts'
import { InboxSettingsService } from '../handoffs/inbox/settings.ts'
import { ListService } from '../handoffs/lists/lists.ts'
import { WorkerService } from '../handoffs/inbox/workers.ts'
import { redisClock, withStore } from './redis.ts'
import { Reads } from '../store/reads.ts'

/** `handoff list --tenant` and `handoff inboxes --tenant`: read from Redis, and like `inspect` wait for no replicas. */

/** Reads as the service does for an operator's key. @returns the exit status */
export async function list (options: ListOptions & { tenant: string }): Promise<number> {
  checkSource(options)
  const caller = callerOf(options.tenant, 'operator', ['status', 'operate'])
  const config = loadConfig()
  return await answering(options, withStore(config, 0, store => {
    const service = new ListService(store.lists, new Reads(), config)
    const page = async ({ passedBy, caughtBy, errorCode, labels, status, ...wanted }: ListWanted) => {
      const given = {
        ...wanted,
        passed_by: passedBy,
        caught_by: caughtBy,
        error_code: errorCode,
        labels: labels && Object.entries(labels).map(label => label.join(':')).join(),
        status: status?.join(),
      }
      // An undefined member counts as left out.
      const query = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
      return await service.page(caller, query)
    }
    return show(options, { page, now: () => redisClock(store) })
  }))
}

/** @returns the exit status */
export async function inboxes (options: InboxesOptions & { tenant: string }): Promise<number> {
  checkSource(options)
  const caller = callerOf(options.tenant, 'operator', ['status'])
  return await answering(options, withStore(loadConfig(), 0, async store => {
    const reads = new Reads()
    const service = new InboxSettingsService(store.inboxes, reads, new WorkerService(store.listeners, reads, () => {}))
    return await showInboxes(options, await redisClock(store), async ({ limit, cursor }) =>
      JSON.stringify(await service.list(caller, { limit, ...cursor !== undefined && { cursor } })))
  }))
}

/** @throws {UsageError} for options that exclude each other */
function checkSource (options: ListOptions | InboxesOptions): void {
  checkLimit(options)
  if (options.url !== undefined) {
    throw new UsageError('--tenant reads from Redis, and --url is the service: one of them')
  }
}

/** A refusal is worded as the service's would be. */
async function answering (options: ListOptions | InboxesOptions, reading: Promise<number>): Promise<number> {
  try {
    return await reading
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { code, more } = error
    const { status, detail } = errorTable[code]
    return refused(options, new HandoffError(code, { status, detail, errors: more.members?.errors as Fault[] }))
  }
}
