import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../core/errors.ts'
import { isLabel, partsOf } from '../clients/typescript/command/common/names.ts'
import { reasonRules } from '../core/schemas/attempts.ts'
import { changes, changesTyped, countIn, readList, shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { sentAgain } from './notes.ts'
import { perform } from './perform.ts'
import { redirect, show } from './session.ts'
import { runPath } from './views/console-layout.ts'
import { runPage, runsPage, stopPage } from './views/console-runs.ts'
import type { Stopping } from './views/console-runs.ts'

/** Runs per page, handoffs of each list on a run's page, and how many one form stops at most. */
const ofRuns = { listed: 50, shown: 20, stopped: 1000 }

type Given = Record<string, unknown>
type Of = FastifyRequest<{ Querystring: Given, Body: unknown }>
type RunRoute = { Querystring: Given, Body: unknown }

/** Runs: which there are, one with its picture, counts and failures, and how it is stopped. */
export function runRoutes (app: FastifyInstance, services: Console): void {
  const { runs, runGraphs, lists, about } = services

  app.get<RunRoute>('/runs', shows, async (request, reply) => {
    const { caller, query } = request
    const label = textOf(query, 'label') ?? about.runLabels[0]!
    const cursor = textOf(query, 'cursor')
    const wanted = { label, limit: ofRuns.listed, ...cursor !== undefined && { cursor } }
    const { items, next_cursor: next } = await runs.page(caller, wanted, request)
    return show(reply, 200, runsPage({ caller, labels: about.runLabels, label, items, next, cursor }))
  })

  app.get<RunRoute>('/run', shows, async (request, reply) => {
    const { caller } = request
    const label = labelOf(services, request)
    const [drawn, failed, live] = await Promise.all([
      runGraphs.draw(caller, label, request as FastifyRequest),
      readList(lists, request, { state: 'failed', labels: label }, { want: ofRuns.shown, pages: 4 }),
      readList(lists, request, { state: 'live', labels: label }, { want: ofRuns.shown, pages: 4 })
    ])
    if (drawn.counts === null && drawn.graph.nodes.length === 0) throw new Problem('not_found')
    const done = {
      cancelled: countIn(request as FastifyRequest, 'cancelled'),
      requested: countIn(request as FastifyRequest, 'requested'),
      more: countIn(request as FastifyRequest, 'more') !== undefined
    }
    return show(reply, 200, runPage({ caller, label, ...drawn, failed, live, listsEnded: about.listsEnded, done }))
  })

  app.get<RunRoute>('/run/stop', { ...shows, config: changes.config }, async (request, reply) => {
    const label = labelOf(services, request)
    return show(reply, 200, stopPage(request.caller, label, await countStopped(services, request, label)))
  })

  app.post<RunRoute>('/run/stop', changesTyped, async (request, reply) => {
    const label = labelOf(services, request)
    const caught = caughtOf(textOf(request.body, 'caught'))
    const reason = (textOf(request.body, 'reason') ?? '').replaceAll('\r\n', '\n').trim()
    const length = [...reason].length
    const problem = request.isSentAgain
      ? `${sentAgain} Nothing was stopped.`
      : length > reasonRules.maxLength
        ? `The reason has ${length} characters; at most ${reasonRules.maxLength} are allowed. Nothing was stopped.`
        : undefined
    if (problem !== undefined) {
      const counted = await countStopped(services, request, label)
      const draft = { problem, reason, caught: caught ?? '' }
      return show(reply, request.isSentAgain ? 200 : 400, stopPage(request.caller, label, counted, draft))
    }
    const more = { ...caught !== null && { caught }, ...reason !== '' && { reason } }
    const body = { ...labelled(label), limit: ofRuns.stopped, ...more }
    const { answer } = await perform(services, request as FastifyRequest, 'purge', { body })
    const { cancelled, requested = 0, more: areMore } = answer as StoppedRun
    const done = `cancelled=${cancelled}&requested=${requested}${areMore ? '&more=1' : ''}`
    return redirect(reply, `${runPath(label)}&${done}`)
  })
}

interface StoppedRun { cancelled: number, requested?: number, more: boolean }

/** The run that the address names. @throws {Problem} not_found */
function labelOf ({ about }: Console, { query }: Of): string {
  const label = `${textOf(query, 'label') ?? ''}:${textOf(query, 'value') ?? ''}`
  if (!isLabel(label) || !about.runLabels.includes(partsOf(label)[0])) throw new Problem('not_found')
  return label
}

function labelled (label: string): { labels: Record<string, string> } {
  const [name, value] = partsOf(label)
  return { labels: { [name]: value } }
}

/** @throws {Problem} invalid_request */
function caughtOf (text: string | undefined): 'ask' | 'force' | null {
  if (text === undefined || text === '') return null
  if (text !== 'ask' && text !== 'force') throw new Problem('invalid_request')
  return text
}

/** What stopping it would change now: what is pending alone, and with what is caught. Nothing is changed. */
async function countStopped (services: Console, request: Of, label: string): Promise<Stopping> {
  const count = async (more: object) => {
    const body = { ...labelled(label), ...more, limit: ofRuns.stopped, dry_run: true }
    const { answer } = await perform(services, request as FastifyRequest, 'purge', { body })
    const { would_change: would, more: areMore } = answer as { would_change: number, more: boolean }
    return { count: would, areMore }
  }
  return { pending: await count({}), all: await count({ caught: 'force' }) }
}
