import { Type } from '@sinclair/typebox'
import { invalid } from '../core/errors.ts'
import { isInbox } from '../core/model.ts'
import type { Caller } from '../core/model.ts'
import { catcherHeaders, ignoredKeyHeaders, noQuery, waitQuery } from '../core/schemas/handoffs.ts'
import {
  groupsAnswer, groupsQuery, inboxAnswer, inboxParams, inboxSettingsBody, inboxesAnswer, inboxesQuery, takeAnswer,
  takeBody, workersAnswer
} from '../core/schemas/inboxes.ts'
import type { GroupsQuery, InboxSettingsBody, InboxesQuery, TakeBody } from '../core/schemas/inboxes.ts'
import { caughtText, takenText } from '../handoffs/lifecycle/caught.ts'
import { key, seconds } from './arguments.ts'
import { cardIn } from './cards.ts'
import { moved, operation, refusedBy, stays, unmoved } from './operation.ts'
import type { OperationCall, Services } from './operation.ts'

/** Catches the next handoffs from an inbox. */
export function catchNext ({ inboxes, after, workers, handoffFiles }: Services) {
  const take = async (call: OperationCall<TakeBody>, max: number) => {
    const { caller, body, bytes, key, worker, requester, waiting } = call
    const wanted = { inboxes: inboxesOf(body, caller), max, bytes, worker, requester }
    const asked = workers.asks(caller, wanted, waiting !== null)
    let from: string | undefined
    try {
      const taken = await inboxes.catch(caller, wanted, key, waiting)
      from = taken.items[0]?.record?.extra.to
      await after.complete(caller.tenant, taken.items, requester)
      const urls = await Promise.all(taken.items.map(item =>
        handoffFiles.urls(caller.tenant, 'files', item.payload, requester)))
      return { ...taken, urls }
    } finally {
      asked(from)
    }
  }
  return operation<TakeBody>({
    name: 'catchNext',
    scope: 'catch',
    method: 'POST',
    path: '/api/catch',
    tag: 'inboxes',
    summary: 'Catch the next handoffs from an inbox',
    description: 'The earliest first; each step of priority counts as a minute. With inboxes, from the first of them ' +
      'that has something. With wait=, the answer comes as soon as there is a handoff. The body is optional. Send an ' +
      'Idempotency-Key, so that you can retry when the answer is lost: you get the same handoffs.',
    query: waitQuery,
    headers: catcherHeaders,
    body: takeBody,
    answers: { 200: takeAnswer },
    refusals: ['not_addressee', ...refusedBy(['claim', 'take'])],
    resumesTrace: true,
    tool: {
      name: 'handoff_catch_next',
      title: 'Catch the next handoff of an inbox',
      description: 'Take the next task from an inbox (by default the one with your own name), as handoff_catch does ' +
        'by id; with inboxes, from the first of them that has one. Use it to serve tasks as they come. Set wait to ' +
        '50 and call again, rather than polling. The answer is {"items":[…]} with one handoff, or with none if ' +
        'nothing came. Catch only what you start at once. Always send idempotency_key, a new one for each task: the ' +
        'same call with it gives you the same task again. If a second content item says truncated, the parts are ' +
        'the handoff itself: read the rest with handoff_read. Then do the work, send handoff_heartbeat if the ' +
        'handoff has heartbeat_within, and end with handoff_done, handoff_fail or handoff_decline: never just drop it.',
      takes: { ...seconds('for one'), ...key },
      body: Type.Pick(takeBody, ['inbox', 'inboxes']),
      async run (call) {
        const { items, items: [one], replayed, urls } = await take(call, 1)
        const outcome = { status: 200, answer: takenText(items, urls), replayed }
        if (one === undefined) return { ...outcome, moved: stays }
        const { id, traceparent } = one
        const inParts = () => caughtText(id, one, urls[0]!)
        return { ...outcome, moved: moved('caught', id, replayed), traceparent, inParts }
      }
    },
    async run (call) {
      const { items, replayed, urls } = await take(call, call.body.max ?? 1)
      return {
        status: 200,
        answer: takenText(items, urls),
        replayed,
        moved: { to: replayed ? [] : items.map(() => 'caught'), ids: items.map(({ id }) => id) },
        // A single handoff's trace can be continued; several handoffs may each have their own.
        traceparent: items.length === 1 ? items[0]!.traceparent : undefined
      }
    },
  })
}

/**
 * The inboxes that a catch names, without repetitions: a name that comes again has its place already.
 * @throws {Problem} if it names one in both ways, or none where the agent's own name can't be one
 */
function inboxesOf ({ inbox, inboxes }: TakeBody, { agent }: Caller): readonly string[] {
  if (inboxes == null) {
    if (inbox == null && !isInbox(agent)) {
      throw invalid({ pointer: '/inbox', message: 'is needed: the name of this agent can\'t be an inbox\'s' })
    }
    return [inbox ?? agent]
  }
  if (inbox != null) throw invalid({ pointer: '/inboxes', message: 'not together with inbox' })
  return [...new Set(inboxes)]
}

/** Inboxes, their figures and their settings. */

export function inbox ({ inboxSettings }: Services) {
  return operation({
    name: 'inbox',
    scope: 'status',
    method: 'GET',
    path: '/api/inboxes/:name',
    tag: 'inboxes',
    summary: 'Count what is in an inbox',
    description: 'Changes nothing, and shows no contents.',
    params: inboxParams,
    query: noQuery,
    answers: { 200: inboxAnswer },
    async run ({ caller, id: name }) {
      return unmoved(await inboxSettings.count(caller.tenant, name))
    },
  })
}

export function inboxWorkers ({ workers }: Services) {
  return operation({
    name: 'workers',
    scope: 'status',
    method: 'GET',
    path: '/api/inboxes/:name/workers',
    tag: 'inboxes',
    summary: 'See who works on an inbox',
    description: 'Who has handoffs of the inbox caught, waits for some, or asked for some within the last minute; ' +
      'the one that was heard of last first. It may be 10 seconds old.',
    params: inboxParams,
    query: noQuery,
    answers: { 200: workersAnswer },
    async run ({ caller, id: name, requester }) {
      return unmoved(await workers.list(caller, name, requester))
    },
  })
}

export function inboxGroups ({ inboxSettings }: Services) {
  return operation<unknown, GroupsQuery>({
    name: 'groups',
    scope: 'status',
    method: 'GET',
    path: '/api/inboxes/:name/groups',
    tag: 'inboxes',
    summary: 'Count what each group of an inbox has',
    description: 'Each group that has something pending or caught. Groups take turns. Go on until next_cursor is null.',
    params: inboxParams,
    query: groupsQuery,
    answers: { 200: groupsAnswer },
    async run ({ caller, id: name, query, requester }) {
      return unmoved(await inboxSettings.groups(caller.tenant, name, query, requester))
    },
  })
}

export function listInboxes ({ inboxSettings }: Services) {
  return operation<unknown, InboxesQuery>({
    name: 'listInboxes',
    scope: 'status',
    method: 'GET',
    path: '/api/inboxes',
    tag: 'inboxes',
    summary: 'List inboxes',
    description: 'Only this tenant’s, by name: each that holds something, has settings, or is waited for. Go on ' +
      'until next_cursor is null: before that, a page may have fewer items than `limit`, or none.',
    query: inboxesQuery,
    answers: { 200: inboxesAnswer },
    async run ({ caller, query, requester }) {
      return unmoved(await inboxSettings.list(caller, query, requester))
    },
  })
}

export function setInbox (services: Services) {
  const { inboxSettings, cards } = services
  const readCard = cardIn(services)
  return operation<InboxSettingsBody>({
    name: 'setInbox',
    scope: 'operate',
    method: 'PUT',
    path: '/api/inboxes/:name',
    tag: 'operating',
    summary: 'Pause, resume or limit an inbox, or make it an agent of A2A',
    description: 'Takes effect on every replica with the next call. Catches from a paused inbox wait as if it ' +
      'were empty. max_caught and max_pending limit how many of its handoffs are caught, and how many are pending; ' +
      'max_caught_per_group limits how many of each group are caught.',
    params: inboxParams,
    query: noQuery,
    headers: ignoredKeyHeaders,
    body: inboxSettingsBody,
    answers: { 200: inboxAnswer },
    async run (call) {
      const { caller, id: name, body: { card: given, ...settings } } = call
      const card = await readCard(call)
      const { isChanged, answer } = await inboxSettings.set(caller, name, settings)
      const isNew = card !== undefined && await cards.set(caller.tenant, name, card)
      const asked = { inbox: name, ...settings, ...given !== undefined && { card: given !== null } }
      const operated = { action: 'inbox', asked, changed: isChanged || isNew ? 1 : 0 }
      return { status: 200, answer, replayed: false, moved: stays, operated }
    },
  })
}
