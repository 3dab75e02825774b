import { invalid } from '../core/errors.ts'
import type { Fault } from '../core/errors.ts'
import { isId } from '../core/ids.ts'
import { labelsExpected, wantedLabels } from '../core/labels.ts'
import { eventTypes, holderOf, isInbox } from '../core/model.ts'
import { eventsAnswer, eventsHeaders, eventsQuery } from '../core/schemas/events.ts'
import type { EventsQuery } from '../core/schemas/events.ts'
import { isEventId } from '../handoffs/feed/feed.ts'
import type { EventFilter } from '../handoffs/feed/feed.ts'
import { operation, unmoved } from './operation.ts'
import type { Services } from './operation.ts'

/** Reads what happened to a tenant's handoffs, as a page or as a stream. */
export function events ({ events: service, streams }: Services) {
  return operation<unknown, EventsQuery>({
    name: 'events',
    scope: 'status',
    method: 'GET',
    path: '/api/events',
    tag: 'events',
    summary: 'Read what happened to the tenant’s handoffs',
    description: 'In one order, each event once. Go on with after=, the answer’s next. With wait=, the answer ' +
      'comes as soon as there is an event. With Accept: text/event-stream, events come as a stream of ' +
      'server-sent events.',
    query: eventsQuery,
    headers: eventsHeaders,
    answers: { 200: eventsAnswer },
    refusals: ['events_off'],
    async run ({ caller, query, waiting }) {
      const { after, limit = 100 } = query
      const { items, next, isReset } = await service.page(caller.tenant, filterOf(query, null), after, limit, waiting)
      const texts = items.map(({ text }) => text).join()
      return unmoved(`{"items":[${texts}],"next":"${next}"${isReset ? ',"reset":true' : ''}}`)
    },
    async stream ({ caller, query, requester }, last) {
      const filter = filterOf(query, { last })
      const start = await service.start(caller.tenant, last ?? query.after)
      return streams.open(caller.tenant, holderOf(caller), filter, start, requester)
    },
  })
}

/**
 * Checks that a schema can't express, all faults at once. @param stream null for a page; `last` is its Last-Event-ID
 */
function filterOf (query: EventsQuery, stream: { last: string | undefined } | null): EventFilter {
  const { after, types, handoff_id: handoffId, inbox, labels, limit, wait } = query
  const wanted = wantedLabels(labels)
  const unknown = types?.split(',').filter(type => !eventTypes.includes(type)) ?? []
  const faults: Fault[] = []
  const check = (isRight: boolean, pointer: string, message: string) => {
    if (!isRight) faults.push({ pointer, message })
  }
  check(after === undefined || isEventId(after), '/after', 'must be the id of an event, or 0-0')
  check(stream?.last === undefined || isEventId(stream.last), '/last-event-id', 'must be the id of an event')
  check(unknown.length === 0, '/types', `must be types of events, separated by commas: ${eventTypes.join(', ')}`)
  check(handoffId === undefined || isId(handoffId), '/handoff_id', 'must be the id of a handoff')
  check(inbox === undefined || isInbox(inbox), '/inbox', 'must be the name of an inbox')
  check(wanted !== null, '/labels', labelsExpected)
  check(stream === null || limit === undefined, '/limit', 'is not for a stream')
  check(stream === null || wait === undefined, '/wait', 'is not for a stream')
  if (faults.length > 0) throw invalid(...faults)
  return {
    types: types === undefined ? null : new Set(types.split(',')),
    handoffId: handoffId ?? null,
    inbox: inbox ?? null,
    labels: wanted ?? null
  }
}
