import type { TSchema } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { invalid } from '../core/errors.ts'
import { cutNested } from '../core/json.ts'
import type { Members } from '../core/json.ts'
import type { Caller, Scope } from '../core/model.ts'
import { cancelBody, declineBody, failBody, heartbeatBody, reissueBody } from '../core/schemas/attempts.ts'
import type { EndAnswer } from '../core/schemas/attempts.ts'
import { doneBody, passBody } from '../core/schemas/handoffs.ts'
import type { Limits, PassBody } from '../core/schemas/handoffs.ts'
import type { AttemptService, HandoffService, Until } from '../handoffs/service.ts'
import type { WaitOptions } from '../handoffs/waiter.ts'
import { jsonType } from './body.ts'
import { traceparentOf } from './observe.ts'
import type { Moved } from './observe.ts'

/** A call of an operation, however it came in. The body has the members that its schema accepted. */
export interface Asked<Body = unknown> {
  caller: Caller
  /** Empty if the operation takes no id. */
  id: string
  body: Body
  members: Members
  /** The body's bytes. */
  bytes: Buffer
  /** The Idempotency-Key. */
  key: string | undefined
  traceparent: string | undefined
  waiting: WaitOptions | null
  until: Until
}

/** The result of an operation. */
export interface Outcome {
  status: number
  /** JSON text, or an object to be serialised. */
  answer: object | string | Buffer
  replayed: boolean
  moved: Moved
  /** The id of the handoff that was made, for the Location field. */
  made?: string
  /** The trace that the handoff was passed in. */
  traceparent?: string | undefined
}

/**
 * One operation on a handoff: its scope, its body and what it does. Requests of their own, batches and MCP's tools all
 * use it.
 */
export interface Operation {
  scope: Scope
  method: 'GET' | 'POST'
  route: string
  body: TSchema | null
  /** Members of its body that are objects whose own members are to be checked. */
  nested: readonly string[]
  run (asked: Asked): Promise<Outcome>
}

export type OperationName = 'pass' | 'catch' | 'done' | 'status' | 'heartbeat' | 'fail' | 'decline' | 'cancel'
  | 'reissue'
export type Operations = Record<OperationName, Operation>

const stays: Moved = { to: [] }

/** All operations on one handoff. */
export function operationsOf (service: HandoffService, attempts: AttemptService, limits: Limits): Operations {
  return {
    pass: operation('pass', 'POST', '/api/pass', passBody(limits), async (
      { caller, body, members, bytes: raw, traceparent, key }: Asked<PassBody>
    ) => {
      const { answer, replayed } = await service.pass(caller, body, { members, raw, traceparent }, key)
      const made = answer.handoff_id
      return { status: 201, answer, replayed, moved: replayed ? stays : { to: ['pending'], ids: [made] }, made }
    }),
    catch: operation('catch', 'GET', '/api/catch/:id', null, async ({ caller, id, key, waiting }) => {
      const { answer, replayed, traceparent } = await service.catch(caller, id, key, waiting)
      return { status: 200, answer, replayed, moved: moved('caught', id, replayed), traceparent }
    }),
    done: operation('catch', 'POST', '/api/done/:id', doneBody, async (
      { caller, id, body, members, bytes, key }: Asked<{ output?: object | null }>
    ) => {
      const result = body.output == null ? undefined : members.raw('output')
      const { answer, replayed } = await service.done(caller, id, result, bytes, key)
      return { status: 200, answer, replayed, moved: moved('done', id, replayed) }
    }),
    status: operation('status', 'GET', '/api/status/:id', null, async ({ caller, id, until, waiting }) => {
      return { status: 200, answer: await service.status(caller, id, until, waiting), replayed: false, moved: stays }
    }),
    heartbeat: operation('catch', 'POST', '/api/heartbeat/:id', heartbeatBody(limits), async (
      { caller, id, body, members }: Asked<{ extend_by?: number | null }>
    ) => {
      return {
        status: 200,
        answer: await attempts.heartbeat(caller, id, body.extend_by ?? null, progressOf(members)),
        replayed: false,
        moved: stays
      }
    }, ['progress']),
    fail: operation('catch', 'POST', '/api/fail/:id', failBody, async (
      { caller, id, body, members, bytes: raw, key }: Asked<{ retry?: boolean | null }>
    ) => {
      return ended(id, await attempts.fail(caller, id, members.raw('error')!, body.retry !== false, { raw, key }))
    }, ['error']),
    decline: operation('catch', 'POST', '/api/decline/:id', declineBody, async (
      { caller, id, members, bytes: raw, key }
    ) => {
      return ended(id, await attempts.decline(caller, id, members.raw('reason')!, { raw, key }))
    }),
    cancel: operation('pass', 'POST', '/api/cancel/:id', cancelBody, async (
      { caller, id, body, members }: Asked<{ force?: boolean | null, reason?: string | null }>
    ) => {
      const reason = body.reason == null ? undefined : members.raw('reason')
      const { answer, replayed } = await attempts.cancel(caller, id, body.force === true, reason)
      const isAsked = answer.status === 'caught'
      // A cancel may be repeated with a key or without, so no answer counts as a replay.
      return { status: isAsked ? 202 : 200, answer, replayed: false, moved: moved('cancelled', id, replayed) }
    }),
    reissue: operation('pass', 'POST', '/api/reissue/:id', reissueBody, async ({ caller, id }) => {
      const { answer, replayed, isTaken } = await attempts.reissue(caller, id)
      const made = answer.handoff_id
      const change: Moved = isTaken
        ? { to: ['cancelled', 'pending'], ids: [id, made] }
        : { to: ['pending'], ids: [made] }
      return { status: 201, answer, replayed, moved: replayed ? stays : { ...change, reissued: ['requested'] }, made }
    }),
  }
}

function operation<Body> (
  scope: Scope, method: 'GET' | 'POST', route: string, body: TSchema | null, run: (
    asked: Asked<Body>
  ) => Promise<Outcome>, nested: readonly string[] = []
): Operation {
  return { scope, method, route, body, nested, run: run as Operation['run'] }
}

function moved (to: Moved['to'][number], id: string, replayed: boolean): Moved {
  return replayed ? stays : { to: [to], ids: [id] }
}

function ended (id: string, { answer, replayed }: { answer: EndAnswer, replayed: boolean }): Outcome {
  const { status, reissued_as: successor } = answer
  const change: Moved = successor === undefined
    ? { to: [status], ids: [id] }
    : { to: [status, 'pending'], ids: [id, successor], reissued: [status] }
  return { status: 200, answer, replayed, moved: replayed ? stays : change }
}

/** The JSON text of a heartbeat's progress: its members as they came, without those that are null. */
function progressOf (members: Members): Buffer | undefined {
  const inside = cutNested(members, 'progress')
  if (inside === undefined) return undefined
  const said = ['message', 'percent'].filter(name => inside.values[name] != null)
  if (said.length === 0) throw invalid({ pointer: '/progress', message: 'needs a message or a percent' })
  return Buffer.from(`{${said.map(name => `"${name}":${textOf(inside, name)}`).join(',')}}`)
}

/**
 * The member's text as it came. But a number may have a million digits, and one that is rounded to 100 may be above it;
 * so a long one is written anew.
 */
function textOf (members: Members, name: string): string {
  const raw = members.raw(name)!.toString()
  return name === 'percent' && raw.length > 20 ? String(members.values[name]) : raw
}

/** Carries out an operation that came as a request of its own. @param base BASE_URL's path */
export async function perform (
  operation: Operation, request: FastifyRequest, reply: FastifyReply, base: string
): Promise<object | string | Buffer> {
  const { id = '' } = request.params as { id?: string }
  const { until = 'done' } = request.query as { until?: Until }
  const { caller, body, members, bytes } = request
  const asked = {
    caller,
    id,
    body,
    members,
    bytes,
    key: idempotencyKey(request),
    traceparent: traceparentOf(request),
    waiting: waitOptions(request),
    until
  }
  const { status, answer, replayed, moved, made, traceparent } = await operation.run(asked)
  markReplayed(reply, replayed)
  request.moved = moved
  reply.code(status)
  if (made !== undefined) reply.header('location', `${base}/api/status/${made}`)
  if (traceparent !== undefined) reply.header('traceparent', traceparent)
  if (typeof answer === 'string' || Buffer.isBuffer(answer)) reply.header('content-type', jsonType)
  return answer
}

/** How a request waits, from its `wait` parameter in seconds; null if it doesn't wait. */
export function waitOptions (request: FastifyRequest): WaitOptions | null {
  const { wait = 0 } = request.query as { wait?: number }
  return wait === 0 ? null : waitFor(wait * 1000, request)
}

/** What a request asks again once time has passed: is its key still good, and is its client still there? */
export function askerOf (request: FastifyRequest): Pick<WaitOptions, 'grant' | 'isGone'> {
  return {
    grant: () => request.grant(),
    // Use the connection, not the response. A response that is pipelined behind another one has no connection yet, and
    // never learns that it closed.
    isGone: () => request.raw.socket.destroyed,
  }
}

/** How a request waits for this long: until its connection closes or its grant ends, whichever comes first. */
export function waitFor (milliseconds: number, request: FastifyRequest): WaitOptions {
  return {
    milliseconds,
    ...askerOf(request),
    onGone (stop) {
      const { socket } = request.raw
      // It may have closed already, and then the event doesn't come again.
      if (socket.destroyed) stop()
      else socket.once('close', stop)
      return () => socket.off('close', stop)
    },
  }
}

/** The client's Idempotency-Key. The request's schema has checked its form. */
export function idempotencyKey (request: FastifyRequest): string | undefined {
  return request.headers['idempotency-key'] as string | undefined
}

export function markReplayed (reply: FastifyReply, replayed: boolean): void {
  if (replayed) reply.header('idempotency-replayed', 'true')
}
