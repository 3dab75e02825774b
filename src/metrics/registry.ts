import { Registry } from 'prom-client'
import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import type { TokenRing } from '../auth/token-ring.ts'
import type { EventStreams } from '../handoffs/feed/events.ts'
import type { ScheduleCounts } from '../handoffs/schedules/runs.ts'
import type { InboxService } from '../handoffs/inbox/inboxes.ts'
import type { Waiter } from '../handoffs/wait/waiter.ts'
import type { Requests } from '../http/observe.ts'
import { allRefusals } from '../store/health.ts'
import type { SweepCounts } from '../store/sweeper.ts'
import type { Store } from '../store/store.ts'
import type { Deliverer } from '../webhooks/deliverer.ts'
import type { TransferCounts } from '../files/counts.ts'
import type { FileSweep } from '../files/sweep.ts'
import { fileFamilies } from './files.ts'
import { Families, processFamilies } from './families.ts'
import type { Sample, Timed } from './families.ts'
import type { Figures, InboxRounds } from './inboxes.ts'
import { tokenFamilies } from './tokens.ts'
import { Shared } from '../core/shared.ts'

/** Where the numbers are. */
interface Sources {
  requests: Requests
  waiter: Waiter
  inboxes: Pick<InboxService, 'counts' | 'waiting'>
  rounds: Pick<InboxRounds, 'figures'>
  streams: Pick<EventStreams, 'count'>
  store: Pick<Store, 'sweeper' | 'ready' | 'looks' | 'replaced' | 'scripts' | 'laneSizes' | 'fullRefusals' | 'events'
    | 'relayRound' | 'payloadKeyNotes'>
  /** Null where webhooks are off. */
  deliverer: Pick<Deliverer, 'counts' | 'disabled' | 'callbacks'> | null
  ticks: ScheduleCounts
  transfers: TransferCounts
  /** Null without a store of files. */
  sweep: Pick<FileSweep, 'counts'> | null
  isDraining: () => boolean
  /** Results of key look-ups, and refusals by rate limit or load shedding; absent where they aren't counted. */
  keys?: { hits: number, misses: number, refused: number, shed: number, throttled: number }
  /** Null where the service takes no tokens of others. */
  tokens: TokenRing | null
  refused?: { limited: number, shed: number, bodies: number }
  /** How many bytes of request bodies are held. */
  bodies?: { held: number }
  /** Absent where the log is not the process's own. */
  lostLines?: (() => number) | undefined
  version: string
}

/** Defines every metric family of the service, in a registry of its own. `close` stops watching the event loop. */
export function makeRegistry (sources: Sources): { registry: Registry, close: () => void } {
  const registry = new Registry()
  const families = new Families(registry)
  requestFamilies(families, sources)
  inboxFamilies(families, sources)
  roundFamilies(families, sources)
  eventFamilies(families, sources)
  refusalFamilies(families, sources)
  if (sources.tokens !== null) tokenFamilies(families, sources.tokens)
  storeFamilies(families, sources)
  payloadFamilies(families, sources.store)
  sweepFamilies(families, sources.store)
  webhookFamilies(families, sources)
  scheduleFamilies(families, sources)
  fileFamilies(families, sources)
  families.gauge({
    name: 'handoff_build_info',
    help: 'Always 1; the labels are the versions of the service and of Node.',
    labels: ['version', 'node']
  },
  () => [[{ version: sources.version, node: process.version }, 1]])
  families.counter({
    name: 'handoff_log_lines_lost_total',
    help: 'Lines of the log that could not be written: the disk is full, or no program reads.'
  },
  () => [[{}, sources.lostLines?.() ?? 0]])
  return { registry, close: processFamilies(families) }
}

function requestFamilies (families: Families, { requests, waiter, store }: Sources): void {
  families.histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from a request’s arrival until its response is handed to the connection, in seconds. Requests ' +
      'without a route are "unmatched". With wait= it includes the wait.',
  }, () => requests.routes.flatMap(({ method, route, byStatus }) =>
    byStatus.flatMap((durations, status): Timed[] =>
      durations === undefined ? [] : [[{ method, route, status_code: status }, durations]])))
  families.counter({
    name: 'handoff_transitions_total',
    help: 'Handoffs that moved to a status. Replayed answers don’t count. Only the sweeping replica counts ' +
      'expired ones.',
    labels: ['to'],
  }, () => Object.entries(movedTo(requests.moved, store.sweeper)).map(([to, count]) => [{ to }, count]))
  families.counter({
    name: 'handoff_reissued_total',
    help: 'Successors made, by reason: the predecessor failed, was declined, stalled, was not_done in time, or its ' +
      'passer requested the reissue.',
    labels: ['because'],
  }, () => Object.entries({ ...requests.reissued, ...store.sweeper.reissued }).map(([because, count]) =>
    [{ because }, count]))
  families.counter({
    name: 'handoff_stalled_total',
    help: 'Handoffs that expired because no heartbeat came in time. Only the sweeping replica counts them.'
  },
  () => [[{}, store.sweeper.stalled]])
  families.counter({
    name: 'handoff_conflicts_total',
    help: 'Requests refused because of the handoff’s state or owner, or because another site sent them, by error code.',
    labels: ['code'],
  }, () => [...requests.conflicts].map(([code, count]) => [{ code }, count]))
  families.gauge({ name: 'handoff_waiters', help: 'Requests waiting (wait=).' }, () => [[{}, waiter.count]])
  families.histogram(
    { name: 'handoff_batch_operations', help: 'Operations per batch.' }, () => [[{}, requests.batchSizes]], 1
  )
  families.counter({
    name: 'handoff_mcp_calls_total',
    help: 'Calls of MCP tools, by tool and result: ok, or the error code.',
    labels: ['tool', 'result'],
  }, () => [...requests.toolCalls].flatMap(([tool, byResult]) =>
    [...byResult].map(([result, count]): [Record<string, string>, number] => [{ tool, result }, count])))
}

function inboxFamilies (families: Families, { inboxes }: Sources): void {
  families.counter(
    { name: 'handoff_inbox_taken_total', help: 'Handoffs caught from inboxes. Replayed answers are not counted.' },
    () => [[{}, inboxes.counts.taken]]
  )
  families.counter(
    { name: 'handoff_inbox_empty_total', help: 'Catches from an inbox that were answered without a handoff.' },
    () => [[{}, inboxes.counts.empty]]
  )
  families.gauge(
    { name: 'handoff_inbox_waiters', help: 'Requests waiting for an inbox.' }, () => [[{}, inboxes.waiting]]
  )
}

/** The figures of the sweeping replica's rounds. */
function roundFamilies (families: Families, { rounds }: Sources): void {
  const where = (read: (figures: Figures) => Sample[]) => () => rounds.figures === null ? [] : read(rounds.figures)
  const ofInboxes = (of: 'pending' | 'caught' | 'failed' | 'oldestAge', unit = 1) => where(({ inboxes }) =>
    inboxes.map(({ tenant, inbox, [of]: value }) => [{ tenant, inbox }, value / unit]))
  const labels = ['tenant', 'inbox']
  const only = 'Only from the sweeping replica, of the inboxes with most pending, by tenant in turn; tenant "", ' +
    'inbox "other": all others.'
  families.gauge(
    { name: 'handoff_inbox_pending', help: `Handoffs in the inbox that can be caught now. ${only}`, labels },
    ofInboxes('pending')
  )
  families.gauge(
    { name: 'handoff_inbox_caught', help: `Handoffs for the inbox that are caught. ${only}`, labels },
    ofInboxes('caught')
  )
  families.gauge({
    name: 'handoff_inbox_failed',
    help: `Handoffs for the inbox that ended without being done and have no successor. ${only}`,
    labels
  }, ofInboxes('failed'))
  families.gauge({
    name: 'handoff_inbox_oldest_seconds',
    help: 'How long the oldest of those that can be caught now has been in the inbox, in seconds, 0 if none is. ' +
      only,
    labels
  }, ofInboxes('oldestAge', 1000))
  families.gauge({
    name: 'handoff_inbox_metrics_age_seconds',
    help: 'Age of the figures by inbox and of handoff_approvals_waiting, in seconds: since the last whole count of ' +
      'the inboxes began; normally up to 15. Only from the sweeping replica.'
  }, where(({ age }) => [[{}, age / 1000]]))
  families.gauge({
    name: 'handoff_approvals_waiting',
    help: 'Handoffs of the tenant that wait for a person. Only from the sweeping replica.',
    labels: ['tenant']
  }, where(({ approvals }) => approvals.map(({ tenant, waiting }) => [{ tenant }, waiting])))
  families.gauge({
    name: 'handoff_live',
    help: 'Handoffs of the tenant that are pending or caught, where handoff limits set --max-live limits them. Only ' +
      'from the sweeping replica.',
    labels: ['tenant']
  }, where(({ live }) => live.map(({ tenant, live }) => [{ tenant }, live])))
  families.gauge({
    name: 'handoff_redis_memory_bytes',
    help: 'Memory of all Redis masters together, in bytes: kind is used, or max (maxmemory; 0: no limit). Only from ' +
      'the sweeping replica.',
    labels: ['kind']
  }, where(({ memory }) => memory === null ? [] : [[{ kind: 'used' }, memory.used], [{ kind: 'max' }, memory.limit]]))
}

/** Where events are off, there is nothing to count. */
function eventFamilies (families: Families, { streams, store }: Sources): void {
  const { events, relayRound } = store
  families.gauge({
    name: 'handoff_feed_length', help: 'Events in the longest feed that this replica read within the last minute.'
  }, () => {
    const longest = events?.maxLength() ?? null
    return longest === null ? [] : [[{}, longest]]
  })
  families.gauge({
    name: 'handoff_relay_lag_seconds',
    help: 'Age of the oldest event that was found missing in its ' +
    'feed, in seconds, 0 if there is none. In a Cluster only from the replica that moves what others did not.'
  },
  () => {
    const lag = relayRound === null ? 0 : relayRound.lag
    return events === null || lag === undefined ? [] : [[{}, lag / 1000]]
  })
  families.gauge(
    { name: 'handoff_event_streams', help: 'Open streams of events.' },
    () => events === null ? [] : [[{}, streams.count]]
  )
}

/** Requests' transitions plus the sweep's: it expires handoffs and makes successors, which are pending. */
function movedTo (moved: Requests['moved'], { expired, reissued }: Store['sweeper']): Record<string, number> {
  return { ...moved, expired, pending: moved.pending + reissued.stalled + reissued.not_done }
}

function refusalFamilies (families: Families, { keys, refused, bodies }: Sources): void {
  families.counter({
    name: 'handoff_key_lookups_total',
    help: 'API key look-ups: result is hit (in memory) or miss (Redis was asked).',
    labels: ['result'],
  }, () => keys === undefined ? [] : [[{ result: 'hit' }, keys.hits], [{ result: 'miss' }, keys.misses]])
  families.counter({
    name: 'handoff_keys_refused_total',
    help: 'API keys refused: reason is unknown (mistyped, expired or revoked), shed (too many unknown keys at once) ' +
      'or throttled (too many failures from the address).',
    labels: ['reason'],
  }, () => keys === undefined
    ? []
    : [
        [{ reason: 'unknown' }, keys.refused],
        [{ reason: 'shed' }, keys.shed],
        [{ reason: 'throttled' }, keys.throttled]
      ])
  families.counter({
    name: 'handoff_requests_refused_total',
    help: 'Requests refused because there were too many: reason is rate_limited (over the agent’s limit, 429), shed ' +
      '(more than this process can serve, 503) or bodies (no room for the body, 503).',
    labels: ['reason'],
  }, () => refused === undefined
    ? []
    : [
        [{ reason: 'rate_limited' }, refused.limited], [{ reason: 'shed' }, refused.shed],
        [{ reason: 'bodies' }, refused.bodies]
      ])
  families.gauge(
    { name: 'handoff_body_bytes', help: 'Bytes of request bodies that this process holds, of BODIES_LIMIT.' },
    () => bodies === undefined ? [] : [[{}, bodies.held]]
  )
}

function storeFamilies (families: Families, { store, isDraining }: Sources): void {
  families.histogram({
    name: 'handoff_redis_call_duration_seconds',
    help: 'Duration of script calls to Redis, parking and retries included, in seconds, until the reply counts or ' +
      'the service gives up (after 2 s).',
  }, () => store.scripts.map(({ name, took }) => [{ script: name }, took]))
  families.gauge({
    name: 'handoff_lane_calls',
    help: 'Calls to each Redis master: state is under_way or parked (not connected, or behind a group). "unknown" ' +
      'is for calls without a known master.',
    labels: ['master', 'state'],
  }, () => store.laneSizes().flatMap(({ master, underWay, parked }) =>
    [[{ master, state: 'under_way' }, underWay], [{ master, state: 'parked' }, parked]]))
  families.gauge({
    name: 'handoff_ready',
    help: '1 if this replica can take requests (/readyz?full=ok is 200), 0 if Redis can’t serve or the service is ' +
      'stopping. A full Redis leaves it 1: see handoff_redis_refuses_writes. Checked every 5 s.',
  }, () => store.ready === undefined ? [] : [[{}, store.ready && !isDraining() ? 1 : 0]])
  families.counter({
    name: 'handoff_redis_full_refusals_total',
    help: 'Calls that this Redis master refused because it is full. A large one is refused while there is room for ' +
      'small ones.',
    labels: ['master'],
  }, () => store.fullRefusals().map(([master, count]) => [{ master }, count]))
  families.counter({
    name: 'handoff_redis_replaced_total',
    help: 'How often this replica found a Redis master empty, or with another data set than before.',
  }, () => [[{}, store.replaced]])
  families.gauge({
    name: 'handoff_redis_refuses_writes',
    help: '1 if this Redis master refuses writes for this reason, else 0: full (it refuses what makes it larger, ' +
      'like pass), readonly, not_saved (its disk) or too_few_replicas; checked every 5 s by a write.',
    labels: ['master', 'reason'],
  }, () => store.looks.flatMap(({ master, refuses }) =>
    allRefusals.map((reason): Sample => [{ master, reason }, refuses === reason ? 1 : 0])))
}

/** What this replica could not open of what was sealed (core/payload-keys.ts). */
function payloadFamilies (families: Families, { payloadKeyNotes: { counts } }: Pick<Store, 'payloadKeyNotes'>): void {
  const samples = (of: ReadonlyMap<string, number>) => () => [...of].map(([kid, count]): Sample => [{ kid }, count])
  families.counter({
    name: 'handoff_payloads_locked_total',
    help: 'Texts that this replica could not decrypt because it lacks their payload key: its kid, or its name in ' +
      'Redis where no replica has it.',
    labels: ['kid'],
  }, samples(counts.locked))
  families.counter({
    name: 'handoff_payloads_broken_total',
    help: 'Texts that their payload key did not decrypt: they were changed or copied in Redis.',
    labels: ['kid'],
  }, samples(counts.broken))
}

/** Only the sweeping replica knows these numbers. The others report only that they don't sweep. */
function sweepFamilies (families: Families, { sweeper }: Pick<Store, 'sweeper'>): void {
  const where = (read: (counts: SweepCounts) => number | undefined) => () => {
    const value = sweeper.counts === undefined ? undefined : read(sweeper.counts)
    return value === undefined ? [] : [[{}, value] as [Record<string, never>, number]]
  }
  const seconds = (milliseconds: number | undefined) => milliseconds === undefined ? undefined : milliseconds / 1000
  families.gauge({ name: 'handoff_sweeping', help: '1 if this replica sweeps, else 0. Exactly one replica should.' },
    () => [[{}, sweeper.isSweeping ? 1 : 0]])
  families.gauge({
    name: 'handoff_sweep_lag_seconds',
    help: 'Time since the sweep of the partition that has waited ' +
    'longest, in seconds; normally up to 2.5. Only from the sweeping replica.'
  },
  where(({ lag }) => seconds(lag)))
  families.gauge({
    name: 'handoff_live_handoffs',
    help: 'Pending and caught handoffs, as of the last sweep. Only from the sweeping replica.'
  },
  where(({ whole }) => whole?.live))
  families.gauge({
    name: 'handoff_oldest_due_age_seconds',
    help: 'Age of the earliest passed deadline that is not ' +
    'swept yet, in seconds, 0 if there is none; normally up to 2.5. Only from the sweeping replica.'
  },
  where(({ whole }) => seconds(whole?.oldestDueAge)))
}

/** Only the delivering replica counts. */
function webhookFamilies (families: Families, { deliverer }: Sources): void {
  families.counter({
    name: 'handoff_webhook_attempts_total',
    help: 'Attempts to deliver to webhooks, by result: delivered, again (it failed and is tried again), or failed ' +
      'for good. Only from the delivering replica.',
    labels: ['result'],
  }, () => Object.entries(deliverer?.counts ?? {}).map(([result, count]) => [{ result }, count]))
  families.counter({
    name: 'handoff_webhooks_disabled_total',
    help: 'Webhooks disabled, by reason: gone (the receiver answered 410) or failing (no success for 72 hours). ' +
      'Only from the delivering replica.',
    labels: ['reason'],
  }, () => Object.entries(deliverer?.disabled ?? {}).map(([reason, count]) => [{ reason }, count]))
  families.counter({
    name: 'handoff_callbacks_total',
    help: 'Attempts to deliver callbacks, by outcome: delivered, retried (it failed and is tried again), or failed ' +
      'for good. Only from the delivering replica.',
    labels: ['outcome'],
  }, () => {
    const { gone, ...outcomes } = deliverer?.callbacks.counts ?? { gone: 0 }
    return Object.entries(outcomes).map(([outcome, count]) => [{ outcome }, count])
  })
  families.counter({
    name: 'handoff_callbacks_gone_total',
    help: 'Callbacks that failed for good because their receiver answered 410. Only from the delivering replica.',
  }, () => [[{}, deliverer?.callbacks.counts.gone ?? 0]])
}

/** A text costs some milliseconds and needs no key, so at most one is made in this time, in milliseconds. */
const interval = 100

/** Prometheus scrapes this. It doesn't call Redis, so it answers during an outage of Redis too. */
export function metricsRoute (
  app: FastifyInstance, registry: { contentType: string, metrics (): Promise<string> }
): void {
  const texts = new Shared<string>({ keptFor: interval })
  app.get('/metrics', {
    schema: {
      operationId: 'metrics',
      summary: 'Read the metrics',
      description: 'In Prometheus’s text format, without ids or contents of handoffs.',
      tags: ['operations'],
      security: [],
      response: { 200: { description: 'All metric families.', content: { 'text/plain': { schema: Type.String() } } } },
    },
  }, async (request, reply) => {
    reply.header('content-type', registry.contentType)
    // Its figures are of after it was asked for.
    return texts.next('', () => registry.metrics())
  })
}

function scheduleFamilies (families: Families, { ticks }: Sources): void {
  families.counter({
    name: 'handoff_schedule_runs_total',
    help: 'Runs of schedules by how they went; of those that came too late, each tick.',
    labels: ['outcome'],
  }, () => Object.entries(ticks.outcomes).map(([outcome, count]) => [{ outcome }, count]))
  families.histogram({
    name: 'handoff_schedule_lateness_seconds',
    help: 'How long after it was due a schedule’s tick was passed, its jitter included, in seconds.',
  }, () => [[{}, ticks.lateness]])
}
