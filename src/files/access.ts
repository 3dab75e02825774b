import { hasScope } from '../auth/scopes.ts'
import { isAddressed, mayReadTexts, statusAt } from '../core/model.ts'
import type { Caller } from '../core/model.ts'
import type { FileHolder } from '../store/files.ts'

/**
 * May this caller have a file because of this handoff? Who may read the status may have a result's; an input's its
 * passer, its catcher while it has it, and who reads all of it or was to approve it.
 */
export function mayHave (caller: Caller, { role, record }: FileHolder, now: number): boolean {
  const status = statusAt(record, now)
  if (role === 'result') return status === 'done' && hasScope(caller, 'status') && mayReadTexts(caller, record)
  if (record.passedBy === caller.agent || (status === 'caught' && record.caught?.by === caller.agent)) return true
  if (!isAddressed(caller, record)) return false
  return hasScope(caller, 'read') || (record.approval !== 'none' && hasScope(caller, 'approve'))
}
