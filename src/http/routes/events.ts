import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { invalid } from '../../core/errors.ts'
import type { Fault } from '../../core/errors.ts'
import { isId } from '../../core/ids.ts'
import { labelsExpected, wantedLabels } from '../../core/labels.ts'
import { isEventId } from '../../handoffs/feed.ts'
import type { EventFilter } from '../../handoffs/feed.ts'
import type { EventService, EventStreams } from '../../handoffs/events.ts'
import { eventTypes, isInbox } from '../../core/model.ts'
import { eventsAnswer, eventsHeaders, eventsQuery } from '../../core/schemas/events.ts'
import type { EventsQuery } from '../../core/schemas/events.ts'
import { problems } from '../../core/schemas/problem.ts'
import { jsonType } from '../body.ts'
import { waitOptions } from '../operations.ts'

const streamType = 'text/event-stream'

export function eventsRoute (app: FastifyInstance, service: EventService, streams: EventStreams): void {
  app.get<{ Querystring: EventsQuery }>('/api/events', {
    config: { scope: 'status' },
    schema: {
      operationId: 'events',
      summary: 'Read what happened to the tenant’s handoffs',
      description: 'In one order, each event once. Go on with after=, the answer’s next. With wait=, the answer ' +
        'comes as soon as there is an event. With Accept: text/event-stream, events come as a stream of ' +
        'server-sent events.',
      tags: ['events'],
      querystring: eventsQuery,
      headers: eventsHeaders,
      response: { 200: eventsAnswer, ...problems({ body: false }, 'events_off') },
    },
  }, async (request, reply) => {
    const accept = request.headers.accept?.toLowerCase() ?? ''
    // Which of the two comes depends on it, so a cache must know that.
    reply.header('vary', 'accept')
    const isStream = isAccepted(accept, streamType) && !isAccepted(accept, 'application/json')
    const filter = readQuery(request, isStream)
    return isStream ? stream(request, reply, filter) : page(request, reply, filter)
  })

  async function page (request: FastifyRequest, reply: FastifyReply, filter: EventFilter): Promise<string> {
    const { after, limit = 100 } = request.query as EventsQuery
    const {
      items, next, isReset
    } = await service.page(request.caller.tenant, filter, after, limit, waitOptions(request))
    reply.header('content-type', jsonType)
    return `{"items":[${items.map(({ text }) => text).join()}],"next":"${next}"${isReset ? ',"reset":true' : ''}}`
  }

  async function stream (request: FastifyRequest, reply: FastifyReply, filter: EventFilter): Promise<Readable> {
    const { caller } = request
    const { after } = request.query as EventsQuery
    const start = await service.start(caller.tenant, lastEventId(request) ?? after)
    const { text, close } = streams.open(caller.tenant, caller.keyId ?? caller, filter, start, request)
    // Some proxies collect an answer before they pass it on, unless the answer says not to.
    reply.headers({ 'content-type': streamType, 'x-accel-buffering': 'no' })
    // 'close' comes whatever ends it, also where its client has gone before anything was read.
    return Readable.from(text, { objectMode: false, highWaterMark: 1 }).once('close', close)
  }
}

/** Whether an Accept field names this media type, and not with a weight of 0 (RFC 9110, 12.5.1). */
function isAccepted (accept: string, type: string): boolean {
  return accept.split(',').some(range => {
    const [name, ...parameters] = range.split(';').map(part => part.trim())
    return name === type && !parameters.some(parameter => /^q=0(\.0*)?$/.test(parameter))
  })
}

function lastEventId ({ headers }: FastifyRequest): string | undefined {
  return headers['last-event-id'] as string | undefined || undefined
}

/** What a schema can't say, all faults at once. */
function readQuery (request: FastifyRequest, isStream: boolean): EventFilter {
  const { after, types, handoff_id: handoffId, inbox, labels, limit, wait } = request.query as EventsQuery
  const wanted = wantedLabels(labels)
  const last = lastEventId(request)
  const unknown = types?.split(',').filter(type => !eventTypes.includes(type)) ?? []
  const faults: Fault[] = []
  const check = (
    isRight: boolean, pointer: string, message: string
  ) => { if (!isRight) faults.push({ pointer, message }) }
  check(after === undefined || isEventId(after), '/after', 'must be the id of an event, or 0-0')
  check(!isStream || last === undefined || isEventId(last), '/last-event-id', 'must be the id of an event')
  check(unknown.length === 0, '/types', `must be types of events, separated by commas: ${eventTypes.join(', ')}`)
  check(handoffId === undefined || isId(handoffId), '/handoff_id', 'must be the id of a handoff')
  check(inbox === undefined || isInbox(inbox), '/inbox', 'must be the name of an inbox')
  check(wanted !== null, '/labels', labelsExpected)
  check(!isStream || limit === undefined, '/limit', 'is not for a stream')
  check(!isStream || wait === undefined, '/wait', 'is not for a stream')
  if (faults.length > 0) throw invalid(...faults)
  return {
    types: types === undefined ? null : new Set(types.split(',')),
    handoffId: handoffId ?? null,
    inbox: inbox ?? null,
    labels: wanted ?? null
  }
}
