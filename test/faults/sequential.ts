import { refusalOf as refusalInTable, standingOf as standingInTable } from '../../src/model.ts'
import type { Approval, Status } from '../../src/model.ts'
import { markOf } from './history.ts'
import type { Operation } from './history.ts'

/** The service as it would be if one asked after the other: what the search for an order (linear.ts) goes by. Made for one handoff. */

/** Who moved it where; null for what hasn't happened. */
export interface State {
  readonly pass: Operation | null
  /** An approve or a reject. */
  readonly decided: Operation | null
  readonly caught: Operation | null
  readonly done: Operation | null
  readonly expired: boolean
}

export const unborn: State = { pass: null, decided: null, caught: null, done: null, expired: false }

export type Standing = 'absent' | Status

export function standingOf ({ pass, decided, caught, done, expired }: State): Standing {
  if (pass === null) return 'absent'
  if (expired) return 'expired'
  if (done !== null) return 'done'
  if (caught !== null) return 'caught'
  return decided?.kind === 'reject' ? 'rejected' : 'pending'
}

/** Where the handoff is after this operation was carried out in this state; null when it changes nothing there. */
export function effectOf (state: State, operation: Operation, human: boolean): State | null {
  const standing = standingOf(state)
  switch (operation.kind) {
    case 'pass': return standing === 'absent' ? { ...state, pass: operation } : null
    case 'catch': return standing === 'pending' && (!human || state.decided !== null) ? { ...state, caught: operation } : null
    case 'done': return standing === 'caught' && state.caught?.agent === operation.agent ? { ...state, done: operation } : null
    case 'approve':
    case 'reject':
      return human && standing === 'pending' && state.decided === null && state.pass?.agent !== operation.agent ? { ...state, decided: operation } : null
    case 'status': return null
  }
}

/** Where the handoff is after this operation got the answer it got in this state; null when it can't have got it there. */
export function afterAnswer (state: State, operation: Operation, human: boolean): State | null {
  if (operation.code !== null) return isRefused(state, operation, human) ? state : null
  if (operation.kind === 'status') return isSeen(state, operation, human) ? state : null
  const next = effectOf(state, operation, human)
  // The first answer may be marked as a repeat: the service itself asks Redis again when the connection breaks.
  if (next !== null) return operation.replayed && operation.token === null ? null : next
  return operation.replayed && isRepeat(state, operation) ? state : null
}

/** Did the same operation bring about where the handoff stands? */
function isRepeat (state: State, operation: Operation): boolean {
  const standing = standingOf(state)
  switch (operation.kind) {
    case 'pass': return isSame(state.pass, operation)
    case 'catch': return standing === 'caught' && isSame(state.caught, operation)
    case 'done': return standing === 'done' && isSame(state.done, operation)
    default: return false
  }
}

function isSame (one: Operation | null, other: Operation): boolean {
  return one !== null && other.token !== null && one.token === other.token && one.agent === other.agent
}

function isRefused (state: State, operation: Operation, human: boolean): boolean {
  if (effectOf(state, operation, human) !== null || isRepeat(state, operation)) return false
  if (operation.code === 'already_decided' && operation.answer?.approval != null && operation.answer.approval !== approvalOf(state, human)) return false
  return operation.code === refusalOf(state, operation, human)
}

/** What is told to whom it isn't done for: as the table of states has it, and what depends on who asks. */
function refusalOf (state: State, { kind, agent }: Operation, human: boolean): string | null {
  if (kind === 'pass') return 'idempotency_key_reused'
  const standing = standingOf(state)
  if (kind === 'status') return standing === 'absent' ? 'not_found' : null
  const approval = (approvalOf(state, human) ?? 'none') as Approval
  const refused = refusalInTable(kind, standing === 'absent' ? 'absent' : standingInTable(standing, approval), approval)
  if (kind === 'done') return (standing === 'caught' || standing === 'done') && state.caught?.agent !== agent ? 'not_the_catcher' : refused
  return refused ?? 'self_approval'
}

/** As an answer has it. */
function approvalOf ({ decided }: State, human: boolean): string | null {
  if (!human) return null
  if (decided === null) return 'waiting'
  return decided.kind === 'approve' ? 'approved' : 'rejected'
}

function isSeen (state: State, { answer }: Operation, human: boolean): boolean {
  if (answer === null || answer.status !== standingOf(state)) return false
  const { caughtBy, caughtAt, completedAt, approval, result } = answer
  return isGiven(caughtBy, state.caught && nameOf(state.caught.agent)) &&
    (caughtAt === undefined || (caughtAt === null) === (state.caught === null)) &&
    (completedAt === undefined || (completedAt === null) === (state.done === null)) &&
    isGiven(approval, approvalOf(state, human)) &&
    isGiven(result, state.done && markOf(state.done))
}

/** What an answer doesn't say can't be wrong. */
function isGiven (said: string | null | undefined, is: string | null): boolean {
  return said === undefined || said === is
}

/** The agent's name without its tenant, as answers give it. */
export function nameOf (agent: string): string {
  return agent.slice(agent.indexOf('/') + 1)
}
