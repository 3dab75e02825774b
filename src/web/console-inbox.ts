import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../core/errors.ts'
import { isInbox } from '../core/model.ts'
import { reasonRules } from '../core/schemas/attempts.ts'
import { inboxSettingsBody } from '../core/schemas/inboxes.ts'
import type { InboxAnswer, InboxSettingsBody } from '../core/schemas/inboxes.ts'
import { changes, changesTyped, countIn, readHandoffs, shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { sentAgain } from './notes.ts'
import { perform } from './perform.ts'
import { redirect, show } from './session.ts'
import { groupsPage, groupsShown } from './views/console-groups.ts'
import { inboxPage, limitLabels } from './views/console-inbox.ts'
import type { InboxLists, LimitName } from './views/console-inbox.ts'
import { purgePage, redrivePage } from './views/console-confirm.ts'
import { inboxPath } from './views/console-layout.ts'
import { workersPage } from './views/console-workers.ts'

/** Handoffs of each list of the page. Of what is pending more: what can be caught is to be among them. */
const listed = 20
const pendingListed = 50
/** How many handoffs one form changes at most: as many as one call of the API. */
const atOnce = 1000

type Named = FastifyRequest<{ Params: { name: string }, Body: unknown }>
type NamedRoute = { Params: { name: string }, Body: unknown }

function nameOf (request: Named): string {
  const { name } = request.params
  if (!isInbox(name)) throw new Problem('not_found')
  return name
}

/** An inbox: its handoffs and its settings. */
export function inboxRoutes (app: FastifyInstance, services: Console): void {
  app.get<NamedRoute>('/inboxes/:name', shows, async (request, reply) => {
    return show(reply, 200, await pageOf(services, request, nameOf(request)))
  })

  app.get<NamedRoute>('/inboxes/:name/workers', shows, async (request, reply) => {
    const { caller } = request
    const name = nameOf(request)
    const working = await services.workers.listAt(caller, name, request as FastifyRequest)
    return show(reply, 200, workersPage(caller, name, working))
  })

  app.get<NamedRoute>('/inboxes/:name/groups', shows, async (request, reply) => {
    const { caller, query } = request
    const [name, cursor] = [nameOf(request), textOf(query, 'cursor')]
    const page = { limit: groupsShown.ofPage, ...cursor !== undefined && { cursor } }
    const groups = await services.inboxSettings.groups(caller.tenant, name, page, request as FastifyRequest)
    return show(reply, 200, groupsPage(caller, name, groups, cursor))
  })

  app.post<NamedRoute>('/inboxes/:name/pause', changes, async (request, reply) => {
    const name = nameOf(request)
    const paused = textOf(request.body, 'paused')
    if (paused !== 'true' && paused !== 'false') throw new Problem('invalid_request')
    await perform(services, request as FastifyRequest, 'setInbox', { id: name, body: { paused: paused === 'true' } })
    return redirect(reply, inboxPath(name))
  })

  app.post<NamedRoute>('/inboxes/:name/limits', changesTyped, async (request, reply) => {
    const name = nameOf(request)
    if (request.isSentAgain) return show(reply, 200, await pageOf(services, request, name, `${sentAgain} ${unchanged}`))
    const { settings, problem } = limitsIn(request.body)
    if (problem !== undefined) return show(reply, 400, await pageOf(services, request, name, problem))
    if (Object.keys(settings).length > 0) {
      await perform(services, request as FastifyRequest, 'setInbox', { id: name, body: settings })
    }
    return redirect(reply, inboxPath(name))
  })
}

/** Changes of all handoffs in an inbox, after a question to the person. */
export function inboxManyRoutes (app: FastifyInstance, services: Console): void {
  const { inboxSettings } = services
  const count = ({ caller }: Named, name: string): Promise<InboxAnswer> => inboxSettings.count(caller.tenant, name)

  app.get<NamedRoute>('/inboxes/:name/purge', asks, async (request, reply) => {
    return show(reply, 200, purgePage(request.caller, await count(request, nameOf(request))))
  })

  app.post<NamedRoute>('/inboxes/:name/purge', changesTyped, async (request, reply) => {
    const name = nameOf(request)
    const reason = (textOf(request.body, 'reason') ?? '').replaceAll('\r\n', '\n').trim()
    if (request.isSentAgain) {
      const problem = `${sentAgain} Nothing was cancelled.`
      return show(reply, 200, purgePage(request.caller, await count(request, name), { reason, problem }))
    }
    const length = [...reason].length
    if (length > reasonRules.maxLength) {
      const problem = `The reason has ${length} characters; at most ${reasonRules.maxLength} are allowed. ` +
        'Nothing was cancelled.'
      return show(reply, 400, purgePage(request.caller, await count(request, name), { reason, problem }))
    }
    const body = { inbox: name, limit: atOnce, ...reason !== '' && { reason } }
    const { answer } = await perform(services, request as FastifyRequest, 'purge', { body })
    return done(reply, name, answer as Done)
  })

  app.get<NamedRoute>('/inboxes/:name/redrive', asks, async (request, reply) => {
    return show(reply, 200, redrivePage(request.caller, await count(request, nameOf(request))))
  })

  app.post<NamedRoute>('/inboxes/:name/redrive', changes, async (request, reply) => {
    const name = nameOf(request)
    const body = { inbox: name, limit: atOnce }
    const { answer } = await perform(services, request as FastifyRequest, 'redrive', { body })
    return done(reply, name, answer as Done)
  })
}

/** A page that asks before a change: it shows counts, and needs the scope of the change. */
const asks = { ...changes, config: { scope: 'operate' } } as const

const unchanged = 'Nothing was changed.'

interface Done { cancelled?: number, reissued?: number, skipped?: number, more: boolean }

/** Back to the inbox's page, which confirms the change. */
function done (reply: FastifyReply, name: string, { more, ...counts }: Done): FastifyReply {
  const query = new URLSearchParams(Object.entries(counts).map(([what, count]): [string, string] =>
    [what, String(count)]))
  if (more) query.set('more', '1')
  return redirect(reply, `${inboxPath(name)}?${query}`)
}

/** @param problem with a typed limit */
async function pageOf (
  { inboxSettings, lists, workers }: Console, request: Named, name: string, problem?: string
): Promise<string> {
  const { caller, query } = request
  const requester = request as FastifyRequest
  const from = (list: string) => {
    const cursor = textOf(query, list)
    return { inbox: name, limit: listed, ...cursor !== undefined && { cursor } }
  }
  const [inbox, working, groups, caught, pending, failed] = await Promise.all([
    inboxSettings.count(caller.tenant, name),
    workers.list(caller, name, requester),
    inboxSettings.groups(caller.tenant, name, { limit: groupsShown.ofInbox }, requester),
    readHandoffs(lists, caller, from('caught'), { statuses: ['caught'], requester }),
    readHandoffs(lists, caller, { ...from('pending'), limit: pendingListed }, { statuses: ['pending'], requester }),
    readHandoffs(lists, caller, { ...from('failed'), state: 'failed' }, { requester }),
  ])
  const now = Math.max(caught.now, pending.now, failed.now)
  const shown: InboxLists = { caught, pending, failed, now }
  const done = {
    cancelled: countIn(request as FastifyRequest, 'cancelled'),
    reissued: countIn(request as FastifyRequest, 'reissued'),
    skipped: countIn(request as FastifyRequest, 'skipped'),
    more: countIn(request as FastifyRequest, 'more') !== undefined
  }
  return inboxPage({
    caller,
    inbox,
    lists: shown,
    workers: working,
    groups,
    cursors: { caught: textOf(query, 'caught'), pending: textOf(query, 'pending'), failed: textOf(query, 'failed') },
    done,
    ...problem !== undefined && { draft: { problem, typed: limitsTyped(request.body) } }
  })
}

interface Range { minimum: number, maximum: number }

const limits = Object.keys(limitLabels) as LimitName[]

function limitsTyped (form: unknown): Record<LimitName, string> {
  return Object.fromEntries(limits.map(name => [name, (textOf(form, name) ?? '').trim()])) as Record<LimitName, string>
}

/** The form's changes: settings that are as the page showed them stay, whatever another operator has set meanwhile. */
function limitsIn (form: unknown): { settings: InboxSettingsBody, problem?: string } {
  const settings: InboxSettingsBody = {}
  const typed = limitsTyped(form)
  for (const name of limits) {
    const text = typed[name]
    if (text === (textOf(form, `shown_${name}`) ?? '')) continue
    const { minimum, maximum } = inboxSettingsBody.properties[name] as unknown as Range
    const wanted = text === '' ? null : /^\d{1,9}$/.test(text) ? Number(text) : NaN
    if (wanted !== null && !(wanted >= minimum && wanted <= maximum)) {
      const problem = `${limitLabels[name]}: type a whole number from ${minimum.toLocaleString('en')} to ` +
        `${maximum.toLocaleString('en')}, or nothing for any number. Nothing was changed.`
      return { settings: {}, problem }
    }
    settings[name] = wanted
  }
  return { settings }
}
