import type { FastifyInstance, FastifyRequest } from 'fastify'
import { consoleArea } from './area.ts'
import { endedRoutes } from './console-ended.ts'
import { failedRoutes } from './console-failed.ts'
import { handoffRoutes } from './console-handoffs.ts'
import { inboxManyRoutes, inboxRoutes } from './console-inbox.ts'
import { keyRoutes } from './console-keys.ts'
import { runRoutes } from './console-runs.ts'
import { scheduleRoutes } from './console-schedules.ts'
import { webhookRoutes } from './console-webhooks.ts'
import type { Console, ConsoleServices, Query } from './console-routes.ts'
import { letPeopleIn, servePeople } from './people.ts'
import type { People } from './people.ts'
import type { Caller } from '../core/model.ts'
import { Shared } from '../core/shared.ts'
import { mayKnowAll, readHandoffs, shows, textOf, nothing, readList } from './console-routes.ts'
import { redirect, show } from './session.ts'
import { overviewPage } from './views/console-overview.ts'
import type { Overview } from './views/console-overview.ts'
import { isId } from '../core/ids.ts'
import { wantedLabels } from '../core/labels.ts'
import { findPage, agentsPage } from './views/console-lists.ts'
import { isName } from '../core/model.ts'
import { activityPage } from './views/console-activity.ts'
import type { ShownActivity } from './views/console-activity.ts'
import type { Memory } from '../store/health.ts'

/** The pages on which operators see what there is, and steer it: everything below /console. */
export async function consolePages (app: FastifyInstance, pages: People & ConsoleServices): Promise<void> {
  const signIn = await servePeople(app, consoleArea, pages)
  await app.register(async own => {
    letPeopleIn(own, consoleArea, pages, signIn)
    overviewRoutes(own, pages)
    inboxRoutes(own, pages)
    inboxManyRoutes(own, pages)
    failedRoutes(own, pages)
    agentRoutes(own, pages)
    activityRoutes(own, pages)
    findRoutes(own, pages)
    endedRoutes(own, pages)
    runRoutes(own, pages)
    scheduleRoutes(own, pages)
    webhookRoutes(own, pages)
    keyRoutes(own, pages)
    handoffRoutes(own, pages)
  })
}

/** Inboxes per page. */
const listed = 100
/** For how long it counts how full Redis is, in milliseconds. */
const memoryFor = 5000
/** How often a page is read at most, in milliseconds, however many people look at it. */
const pace = 250

/** The console's first page: troubles, and inboxes. */
function overviewRoutes (app: FastifyInstance, services: Console): void {
  const reads = new Shared<Overview>({ keptFor: pace })
  const memories = new Shared<Memory | null>({ keptFor: memoryFor })
  app.get('/', shows, async (request, reply) => {
    const { caller } = request
    const cursor = textOf(request.query, 'cursor')
    const shared = `${caller.tenant} ${cursor ?? ''}`
    const overview = await reads.next(shared, () => readOverview(services, caller, cursor))
    // The activity renews itself from its own page.
    const isPart = request.headers['hx-request'] !== undefined
    const activity = isPart || cursor !== undefined ? null : await titledActivity(services, request)
    const memory = mayKnowAll(caller) ? await memories.get('', services.memory) : null
    return show(reply, 200, overviewPage(caller, overview, activity, memory))
  })
}

async function titledActivity (
  { activities, titles }: Pick<Console, 'activities' | 'titles'>, request: FastifyRequest
): Promise<ShownActivity | null> {
  const { caller } = request
  const activity = await activities.look(caller.tenant)
  if (activity === null) return null
  const handoffs = activity.newest.flatMap(({ text }) => {
    const { data: { handoff_id: id, to } } = JSON.parse(text) as { data: { handoff_id?: string, to?: string } }
    return id === undefined ? [] : [{ id, to }]
  })
  return { ...activity, titles: await titles.of(caller, handoffs, request) }
}

async function readOverview (
  { inboxSettings, lists, approvals }: Console, caller: Caller, cursor: string | undefined
): Promise<Overview> {
  const [{ items, next_cursor: next }, failed, waiting, count] = await Promise.all([
    inboxSettings.list(caller, { limit: listed, ...cursor !== undefined && { cursor } }),
    readHandoffs(lists, caller, { state: 'failed', limit: 1 }),
    approvals.list(caller.tenant, undefined, 1),
    approvals.count(caller.tenant),
  ])
  return {
    inboxes: items,
    cursor,
    next,
    // An empty part with a cursor: the list is long, and nothing is known yet.
    failed: { latest: failed.items[0], mayBe: failed.next !== null },
    waiting: { count: waiting.items.length === 0 ? 0 : count, since: waiting.items[0]?.record.createdAt },
    now: waiting.now,
  }
}

/** How many handoffs of each list are shown, and how many pages of it are read for that at most. */
const ofEachList = { want: 50, pages: 8 }

interface Asked { Querystring: Record<string, unknown> }

/** Finds a handoff by its id, or those with a label. */
function findRoutes (app: FastifyInstance, { lists, about }: Console): void {
  app.get<Asked>('/find', shows, async (request, reply) => {
    const { caller, query } = request
    const sought = (textOf(query, 'q') ?? '').trim()
    const id = idIn(sought)
    if (id !== undefined) return redirect(reply, `/console/handoffs/${id}`)
    const labels = sought.replace(/\s*,\s*/g, ',')
    if (sought === '' || wantedLabels(labels) === null) {
      return show(reply, 200, findPage({ caller, sought, found: null }))
    }
    const run = wantedLabels(labels)!.find(label => about.runLabels.includes(label.slice(0, label.indexOf(':'))))
    const [state, cursor] = [textOf(query, 'state'), textOf(query, 'cursor')]
    const on = cursor === undefined ? undefined : foundStates.find(one => one === state)
    const of = (one: typeof foundStates[number], wanted: Query) => on !== undefined && one !== on
      ? nothing
      : readList(lists, request, { ...wanted, labels }, { ...ofEachList, cursor })
    const found = {
      live: await of('live', { state: 'live' }),
      failed: await of('failed', { state: 'failed' }),
      over: about.listsEnded ? await of('over', { state: 'ended', status: wellEnded }) : null
    }
    const more = { ...run !== undefined && { run }, ...on !== undefined && { state: on } }
    return show(reply, 200, findPage({ caller, sought: labels, found, ...more }))
  })
}

/** The parts of what is found. */
const foundStates = ['live', 'failed', 'over'] as const
/** What has ended, and is no failure. */
const wellEnded = 'done,cancelled,rejected'

/** The id that a person pasted, alone or at the end of an address. */
function idIn (text: string): string | undefined {
  return text.split(/[/?#\s]/).find(isId)
}

/** How many handoffs are read for one page, and how many pages of the list for that at most. */
const ofAllAgents = { want: 300, pages: 6 }

/** The agents, and the handoffs that they hold. */
function agentRoutes (app: FastifyInstance, { lists }: Console): void {
  app.get<Asked>('/agents', shows, async (request, reply) => {
    const { caller, query } = request
    const agent = textOf(query, 'agent')
    const cursor = textOf(query, 'cursor')
    const wanted = agent === undefined ? {} : { caught_by: agent }
    const isKnowable = agent === undefined || isName(agent)
    const part = isKnowable ? await readList(lists, request, wanted, { ...ofAllAgents, cursor, caught: true }) : nothing
    return show(reply, 200, agentsPage({ caller, part, agent, isLater: cursor !== undefined }))
  })
}

/** The tenant's activity. The overview has the same part, and renews it from here. */
function activityRoutes (app: FastifyInstance, services: Console): void {
  app.get('/activity', shows, async (request, reply) =>
    show(reply, 200, activityPage(request.caller, await titledActivity(services, request))))
}
