import { isStatus } from '../model.ts'
import type { Approval, Decision, HandoffRecord } from '../model.ts'
import { Unavailable } from '../redis/lanes.ts'

/** How the scripts' replies are read; lua/lib/record.lua says what their words are. */

/**
 * A script's reply, its tag made text, then what the tag's line in the script's header says. The reply is ours: no copy.
 * @throws {Unavailable} the record is of a newer version of the service
 */
export function tagged (reply: unknown): [string, ...unknown[]] {
  const parts = reply as [Buffer | string, ...unknown[]]
  parts[0] = parts[0].toString('latin1')
  if (parts[0] === 'newer') throw new Unavailable(ofNewerVersion)
  return parts as [string, ...unknown[]]
}

const ofNewerVersion = 'a newer version of the service wrote this handoff; a replica of that version serves it'

/** Field `s` of a handoff's hash. @throws {Unavailable} it is of a newer version of the service */
export function parseRecord (text: unknown): HandoffRecord {
  const [status, approval, createdAt, expiresAt, passedBy, , caughtAt, deadline, caughtBy, , completedAt] = String(text).split(' ')
  if (!isStatus(status)) throw new Unavailable(ofNewerVersion)
  return {
    status,
    approval: approval as Approval,
    createdAt: Number(createdAt),
    expiresAt: Number(expiresAt),
    passedBy: passedBy as string,
    caught: caughtAt === undefined ? null : { at: Number(caughtAt), deadline: Number(deadline), by: caughtBy as string },
    completedAt: completedAt === undefined ? null : Number(completedAt),
  }
}

/** Field `d`, or null where nobody decided. */
export function parseDecision (text: unknown): Decision | null {
  if (text == null) return null
  const [at, by, , ...note] = String(text).split(' ')
  return { at: Number(at), by: by as string, note: note.join(' ') }
}
