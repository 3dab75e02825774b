import type { Approvals } from '../../../src/store/approvals.ts'
import type { Handoffs, Place } from '../../../src/store/handoffs.ts'
import { Unavailable } from '../../../src/redis/lanes.ts'
import { expiryOf, statusAt } from '../../../src/model.ts'
import type { Answered, Operation } from '../history.ts'
import { markOf, nameOf } from '../history.ts'

/** Turns a call of the store into the service's answer, for the history. */

export interface Stores { handoffs: Handoffs, approvals: Approvals }

const payload = Buffer.from('"task":"t","output":{"n":1}')
const note = Buffer.from('null')
const statusOf: Record<string, number> = { not_found: 404, expired: 410, not_the_catcher: 403, self_approval: 403, reused: 422 }

export async function answerTo (operation: Operation, place: Place, stores: Stores): Promise<Answered> {
  try {
    return await carryOut(operation, place, stores)
  } catch (error) {
    if (error instanceof Unavailable) return { status: 503, code: 'unavailable', answer: null }
    return { status: 500, code: String(error), answer: null }
  }
}

async function carryOut (operation: Operation, place: Place, { handoffs, approvals }: Stores): Promise<Answered> {
  const { kind, agent, token, n } = operation
  const { id } = place
  const name = nameOf(agent)
  const itsToken = token ?? (kind === 'pass' ? '-' : `once-${n}`)
  switch (kind) {
    case 'pass': {
      const { human, expiresIn } = operation.asked as { human: boolean, expiresIn: number }
      // A retry is another span of the trace, but the same operation.
      const traceparent = token === null ? undefined : `t${n}`
      const reply = await handoffs.pass({ ...place, token: itsToken, traceparent, passedBy: name, requireHuman: human, expiresIn, payload, options: human ? ' l2 hdigest' : '' })
      if (!('createdAt' in reply)) return refused('idempotency_key_reused', 422)
      const { createdAt, expiresAt, outcome } = reply
      return { status: 201, code: null, answer: { id, status: 'pending', createdAt, expiresAt }, replayed: isReplayed(outcome, token) }
    }
    case 'catch': {
      const reply = await handoffs.catch(place, itsToken, name)
      if (!('payload' in reply)) return refused(reply.outcome)
      const approval = reply.decision === null ? {} : { approval: 'approved', decidedAt: reply.decision.at }
      return {
        status: 200,
        code: null,
        answer: { id, status: 'caught', createdAt: reply.createdAt, ...approval },
        same: payload.equals(reply.payload),
        replayed: isReplayed(reply.outcome, token),
      }
    }
    case 'done': {
      const reply = await handoffs.done(place, itsToken, name, Buffer.from(`"${markOf(operation)}"`), '')
      if (!('completedAt' in reply)) {
        const completedAt = 'seen' in reply ? reply.seen?.record.completedAt : undefined
        return reply.outcome === 'already_done' ? { ...refused(reply.outcome), answer: { completedAt: completedAt! } } : refused(reply.outcome)
      }
      const { completedAt, outcome } = reply
      return { status: 200, code: null, answer: { id, status: 'done', completedAt }, replayed: isReplayed(outcome, token) }
    }
    case 'status': return readStatus(id, await handoffs.status(place))
    case 'approve':
    case 'reject': {
      const verdict = kind === 'approve' ? 'approved' : 'rejected'
      const reply = await approvals.decide(verdict, place, itsToken, name, {}, note)
      if (reply.outcome === 'already_decided') {
        const { record, decision } = reply.seen!
        return { ...refused(reply.outcome), answer: { approval: record.approval, decidedAt: decision!.at } }
      }
      if (reply.outcome !== 'decided') return refused(reply.outcome)
      return { status: 200, code: null, answer: { id, status: kind === 'approve' ? 'pending' : 'rejected', approval: verdict, decidedAt: reply.at } }
    }
    default: throw new Error(`${kind} is nothing that the simulator's clients ask for`)
  }
}

function isReplayed (outcome: string, token: string | null): boolean {
  return outcome === 'replayed' && token !== null
}

function refused (code: string, status = statusOf[code] ?? 409): Answered {
  return { status, code, answer: null }
}

function readStatus (id: string, reply: Awaited<ReturnType<Handoffs['status']>>): Answered {
  if (reply.outcome === 'not_found') return refused(reply.outcome)
  const { record, now, decision, result } = reply
  const status = statusAt(record, now)
  const answer = {
    id,
    status,
    createdAt: record.createdAt,
    expiresAt: record.expiresAt,
    caughtAt: record.caught && record.caught.at,
    caughtBy: record.caught && record.caught.by,
    completedAt: record.completedAt,
    ...status === 'expired' && { endedAt: expiryOf(record).at },
    approval: record.approval === 'none' ? null : record.approval,
    decidedAt: decision && decision.at,
    result: result === null ? null : JSON.parse(result.toString()) as string,
  }
  return { status: 200, code: null, answer }
}
