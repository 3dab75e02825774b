import { Type } from '@sinclair/typebox'
import { ignoredKeyHeaders, noQuery, passAnswer, passHeaders } from '../core/schemas/handoffs.ts'
import {
  backfillAnswer, backfillBody, runsOfAnswer, runsOfQuery, scheduleAnswer, scheduleBody, scheduleParams,
  schedulesAnswer,
  schedulesQuery,
  turnedAnswer
} from '../core/schemas/schedules.ts'
import type { BackfillBody, RunsOfQuery, ScheduleGiven, SchedulesQuery } from '../core/schemas/schedules.ts'
import { operation, refusedBy, stays, unmoved } from './operation.ts'
import type { OperationOutcome, Services } from './operation.ts'

/** What passes handoffs by itself, again and again. */

const readingOne = { scope: 'status', tag: 'schedules', method: 'GET', query: noQuery } as const
const changingOne = {
  scope: ['pass', 'operate'], tag: 'schedules', query: noQuery, headers: ignoredKeyHeaders, params: scheduleParams
} as const
const nothing = Type.Object({}, { additionalProperties: false })

/** @param isAnothers whether an operator did it to what another agent made */
function changedBy (
  outcome: Omit<OperationOutcome, 'operated' | 'moved' | 'replayed'> & Partial<OperationOutcome>,
  action: string,
  name: string,
  isAnothers: boolean
): OperationOutcome {
  const operated = isAnothers ? { action: `schedule ${action}`, asked: { schedule: name }, changed: 1 } : undefined
  return { replayed: false, moved: stays, ...outcome, operated }
}

export function putSchedule ({ schedules }: Services) {
  return operation<ScheduleGiven>({
    ...changingOne,
    name: 'putSchedule',
    method: 'PUT',
    path: '/api/schedules/:name',
    summary: 'Make or replace a schedule',
    description: 'It passes its handoff at each of its times, as the agent that made it. Replaces all that it said ' +
      'before; only the token of a callback with the same URL stays if none is given. Only that agent may change it, ' +
      'or a key with the scope operate, which makes none.',
    body: scheduleBody,
    nested: [],
    answers: { 200: scheduleAnswer, 201: scheduleAnswer },
    refusals: ['not_the_passer', 'too_many_schedules', 'result_schema_too_slow'],
    async run ({ caller, id, body, members }) {
      const { answer, isNew, isAnothers } = await schedules.put(caller, id, body, members)
      return changedBy({ status: isNew ? 201 : 200, answer }, 'put', id, isAnothers)
    },
  })
}

export function getSchedule ({ schedules }: Services) {
  return operation({
    ...readingOne,
    name: 'getSchedule',
    path: '/api/schedules/:name',
    params: scheduleParams,
    summary: 'Read a schedule',
    answers: { 200: scheduleAnswer },
    run: async ({ caller, id }) => unmoved(await schedules.get(caller, id)),
  })
}

export function listSchedules ({ schedules }: Services) {
  return operation<unknown, SchedulesQuery>({
    ...readingOne,
    name: 'listSchedules',
    path: '/api/schedules',
    summary: 'List the tenant’s schedules',
    query: schedulesQuery,
    answers: { 200: schedulesAnswer },
    run: async ({ caller, query }) => unmoved(await schedules.list(caller, query)),
  })
}

export function deleteSchedule ({ schedules }: Services) {
  return operation({
    ...changingOne,
    name: 'deleteSchedule',
    method: 'DELETE',
    path: '/api/schedules/:name',
    summary: 'Delete a schedule',
    description: 'It passes nothing any more. What it has passed stays.',
    answers: { 204: Type.Null({ description: 'Deleted.' }) },
    refusals: ['not_the_passer'],
    async run ({ caller, id }) {
      return changedBy({ status: 204, answer: undefined }, 'delete', id, await schedules.delete(caller, id))
    },
  })
}

function turning (name: string, path: string, summary: string, isPaused: boolean, description: string) {
  return ({ schedules }: Services) => operation({
    ...changingOne,
    name,
    method: 'POST',
    path,
    summary,
    description,
    body: nothing,
    answers: { 200: turnedAnswer },
    refusals: ['not_the_passer'],
    async run ({ caller, id }) {
      const { answer, isAnothers } = await schedules.pause(caller, id, isPaused)
      return changedBy({ status: 200, answer }, isPaused ? 'pause' : 'resume', id, isAnothers)
    },
  })
}

export const pauseSchedule = turning(
  'pauseSchedule', '/api/schedules/:name/pause', 'Pause a schedule', true, 'It passes nothing until resumed. The ' +
    'body may be left out.'
)
export const resumeSchedule = turning(
  'resumeSchedule', '/api/schedules/:name/resume', 'Resume a schedule', false, 'From its next time on: what was due ' +
    'meanwhile doesn’t run, unless a backfill passes it. The body may be left out.'
)

export function listScheduleRuns ({ schedules }: Services) {
  return operation<unknown, RunsOfQuery>({
    ...readingOne,
    name: 'listScheduleRuns',
    path: '/api/schedules/:name/runs',
    params: scheduleParams,
    query: runsOfQuery,
    summary: 'List the newest runs of a schedule',
    answers: { 200: runsOfAnswer },
    run: async ({ caller, id, query }) => unmoved(await schedules.runs(caller, id, query)),
  })
}

export function runSchedule ({ schedules }: Services) {
  return operation({
    ...changingOne,
    name: 'runSchedule',
    method: 'POST',
    path: '/api/schedules/:name/run',
    summary: 'Pass a schedule’s handoff now',
    description: 'Also while it is paused. None of its times changes. Send an Idempotency-Key, so that you can retry ' +
      'when the answer is lost. The body may be left out.',
    headers: passHeaders,
    body: nothing,
    answers: { 201: passAnswer },
    refusals: ['not_the_passer', ...refusedBy('pass'), 'result_schema_too_slow', 'too_many_live'],
    async run ({ caller, id, key }) {
      const { answer, replayed, isAnothers } = await schedules.run(caller, id, key)
      return changedBy({ status: 201, answer, replayed, made: answer.handoff_id }, 'run', id, isAnothers && !replayed)
    },
  })
}

export function backfillSchedule ({ schedules }: Services) {
  return operation<BackfillBody>({
    ...changingOne,
    name: 'backfillSchedule',
    method: 'POST',
    path: '/api/schedules/:name/backfill',
    summary: 'Pass what a schedule missed',
    description: 'The ticks of the span that didn’t run, the oldest first: at most 100 a call, of at most 1,000 that ' +
      'it looks at. Go on with next as since until more is false.',
    body: backfillBody,
    answers: { 200: backfillAnswer },
    refusals: ['not_the_passer'],
    async run ({ caller, id, body }) {
      const { answer, isAnothers } = await schedules.backfill(caller, id, body)
      return changedBy({ status: 200, answer }, 'backfill', id, isAnothers && answer.passed > 0)
    },
  })
}
