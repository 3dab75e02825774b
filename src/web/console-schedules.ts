import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Static } from '@sinclair/typebox'
import { Problem, errorTable } from '../core/errors.ts'
import { randomToken } from '../core/ids.ts'
import type { Caller } from '../core/model.ts'
import type { runsOfAnswer, schedulesAnswer } from '../core/schemas/schedules.ts'
import { changes, countIn, shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { perform } from './perform.ts'
import { redirect, show } from './session.ts'
import { schedulePath } from './views/console-layout.ts'
import { maySteer, runNowPage, schedulePage, schedulesPage } from './views/console-schedules.ts'
import type { ScheduleRun, ShownSchedule } from './views/console-schedules.ts'

/** Schedules per page, and runs on the page of one. */
const ofSchedules = { listed: 50, runs: 50 }

type OfSchedule = FastifyRequest<{ Params: { name: string }, Body: unknown }>
type ScheduleRoute = { Params: { name: string }, Body: unknown }

/** Forms that change a schedule: for operators, and for the agent whose it is. */
const steers = { ...changes, config: { scope: ['pass', 'operate'] } } as const
const looksToSteer = { ...shows, config: steers.config } as const

/** Schedules: which there are, one with its runs; pausing it, and passing its handoff now. */
export function scheduleRoutes (app: FastifyInstance, services: Console): void {
  app.get('/schedules', shows, async (request, reply) => {
    const { caller } = request
    const cursor = textOf(request.query, 'cursor')
    const query = { limit: ofSchedules.listed, ...cursor !== undefined && { cursor } }
    const { answer } = await perform(services, request, 'listSchedules', { query })
    const { items, next_cursor: next } = JSON.parse(answer as string) as Static<typeof schedulesAnswer>
    const states = await standingsOf(services, request, items.map(({ last }) => last))
    return show(reply, 200, schedulesPage({ caller, items, next, cursor, states }))
  })

  app.get<ScheduleRoute>('/schedules/:name', shows, async (request, reply) =>
    show(reply, 200, await oneShown(services, request)))

  app.post<ScheduleRoute>('/schedules/:name/pause', steers, async (request, reply) => {
    const { name: id } = request.params
    const paused = textOf(request.body, 'paused')
    if (paused !== 'true' && paused !== 'false') throw new Problem('invalid_request')
    const operation = paused === 'true' ? 'pauseSchedule' : 'resumeSchedule'
    await perform(services, request as FastifyRequest, operation, { id })
    return redirect(reply, schedulePath(id))
  })

  app.get<ScheduleRoute>('/schedules/:name/run', looksToSteer, async (request, reply) => {
    const { caller } = request
    const one = await scheduleShown(services, request)
    if (!maySteer(caller, one)) throw new Problem('not_the_passer')
    return show(reply, 200, runNowPage(caller, one, randomToken()))
  })

  app.post<ScheduleRoute>('/schedules/:name/run', steers, async (request, reply) => {
    const { params: { name: id }, body } = request
    const key = textOf(body, 'key')
    if (key === undefined || !/^[\w-]{1,64}$/.test(key)) throw new Problem('invalid_request')
    try {
      await perform(services, request as FastifyRequest, 'runSchedule', { id, key })
    } catch (error) {
      if (!(error instanceof Problem) || ![400, 409, 422, 429].includes(errorTable[error.code].status)) throw error
      services.refused(error.code)
      return show(reply, errorTable[error.code].status, await oneShown(services, request, error))
    }
    return redirect(reply, `${schedulePath(id)}?passed=1`)
  })
}

async function scheduleShown (services: Console, request: OfSchedule): Promise<ShownSchedule> {
  const { answer } = await perform(services, request as FastifyRequest, 'getSchedule', { id: request.params.name })
  return JSON.parse(answer as string) as ShownSchedule
}

/** @param refused why its handoff wasn't passed now */
async function oneShown (services: Console, request: OfSchedule, refused?: Problem): Promise<string> {
  const { caller, params: { name: id } } = request as OfSchedule & { caller: Caller }
  const [one, { answer }] = await Promise.all([
    scheduleShown(services, request),
    perform(services, request as FastifyRequest, 'listScheduleRuns', { id, query: { limit: ofSchedules.runs } })
  ])
  const { items: runs } = JSON.parse(answer as string) as Static<typeof runsOfAnswer>
  const states = await standingsOf(services, request as FastifyRequest, runs)
  const wasPassed = countIn(request as FastifyRequest, 'passed') === 1
  return schedulePage({ caller, one, runs, states, wasPassed, refused })
}

/** How the work of these runs stands, by the id of its first attempt. What has gone isn't among them. */
async function standingsOf (
  services: Console, request: FastifyRequest, runs: ReadonlyArray<ScheduleRun | null>
): Promise<ReadonlyMap<string, string>> {
  const ids = runs.flatMap(run => run?.handoff_id ?? [])
  if (ids.length === 0) return new Map()
  const { answer } = await perform(services, request, 'wait', { body: { ids, results: false } })
  const { items } = JSON.parse(String(answer)) as { items: Array<{ status: string }> }
  return new Map(items.flatMap(({ status }, at) => status === 'unknown' ? [] : [[ids[at]!, status] as const]))
}
