import { Registry } from 'prom-client'
import type { InboxService } from '../handoff/inboxes.ts'
import type { Waiter } from '../handoff/waiter.ts'
import type { Requests } from '../http/requests.ts'
import type { SweepCounts } from '../store/sweep-statistics.ts'
import type { Store } from '../store/store.ts'
import { Families } from './families.ts'
import type { Timed } from './families.ts'
import { processFamilies } from './process.ts'

/** Where the numbers are. */
export interface Sources {
  requests: Requests
  waiter: Waiter
  inboxes: Pick<InboxService, 'counts' | 'waiting'>
  store: Pick<Store, 'sweeper' | 'ready' | 'scripts' | 'laneSizes'>
  isDraining: () => boolean
  /** What became of keys that were looked for, and requests refused for their number; told of where there is such counting. */
  keys?: { hits: number, misses: number, refused: number, shed: number, throttled: number }
  refused?: { limited: number, shed: number }
  version: string
}

/** Every family that the service tells, defined once, in a registry of its own; and what ends the watching that it takes. */
export function makeRegistry (sources: Sources): { registry: Registry, close: () => void } {
  const registry = new Registry()
  const families = new Families(registry)
  requestFamilies(families, sources)
  inboxFamilies(families, sources)
  refusalFamilies(families, sources)
  storeFamilies(families, sources)
  sweepFamilies(families, sources.store)
  families.gauge({ name: 'handoff_build_info', help: 'Always 1; which version runs on which Node.', labels: ['version', 'node'] },
    () => [[{ version: sources.version, node: process.version }, 1]])
  return { registry, close: processFamilies(families) }
}

function requestFamilies (families: Families, { requests, waiter, store }: Sources): void {
  families.histogram({
    name: 'http_request_duration_seconds',
    help: 'From a request’s arrival until its answer is handed to the connection, in seconds. What has no route is "unmatched". With wait= it takes as long as it waits.',
  }, () => requests.routes.flatMap(({ method, route, byStatus }) =>
    byStatus.flatMap((durations, status): Timed[] => durations === undefined ? [] : [[{ method, route, status_code: status }, durations]])))
  families.counter({
    name: 'handoff_transitions_total',
    help: 'Handoffs that were moved to a status, as answered; replayed answers move nothing. Whoever sweeps counts what expired.',
    labels: ['to'],
  }, () => Object.entries(movedTo(requests.moved, store.sweeper)).map(([to, count]) => [{ to }, count]))
  families.counter({
    name: 'handoff_reissued_total',
    help: 'Successors that were made: because their predecessor failed, was declined, stalled, was not_done in time, or its passer requested it.',
    labels: ['because'],
  }, () => Object.entries({ ...requests.reissued, ...store.sweeper.reissued }).map(([because, count]) => [{ because }, count]))
  families.counter({ name: 'handoff_stalled_total', help: 'Handoffs that expired because no heartbeat came in time. Whoever sweeps counts them.' },
    () => [[{}, store.sweeper.stalled]])
  families.counter({
    name: 'handoff_conflicts_total',
    help: 'Requests refused since the handoff is not where they want it or not for who asks, or since another site sent them, by the error’s code.',
    labels: ['code'],
  }, () => [...requests.conflicts].map(([code, count]) => [{ code }, count]))
  families.gauge({ name: 'handoff_waiters', help: 'Requests that wait (wait=).' }, () => [[{}, waiter.count]])
  families.histogram({ name: 'handoff_batch_operations', help: 'Operations in a batch.' }, () => [[{}, requests.batchSizes]], 1)
}

function inboxFamilies (families: Families, { inboxes }: Sources): void {
  families.counter({ name: 'handoff_inbox_taken_total', help: 'Handoffs that were caught from an inbox; those of replayed answers are not counted.' }, () => [[{}, inboxes.counts.taken]])
  families.counter({ name: 'handoff_inbox_empty_total', help: 'Catches from an inbox that were answered without a handoff.' }, () => [[{}, inboxes.counts.empty]])
  families.gauge({ name: 'handoff_inbox_waiters', help: 'Requests that wait for an inbox.' }, () => [[{}, inboxes.waiting]])
}

/** What the sweep makes of them besides: successors are made pending, too. */
function movedTo (moved: Requests['moved'], { expired, reissued }: Store['sweeper']): Record<string, number> {
  return { ...moved, expired, pending: moved.pending + reissued.stalled + reissued.not_done }
}

function refusalFamilies (families: Families, { keys, refused }: Sources): void {
  families.counter({
    name: 'handoff_key_lookups_total',
    help: 'Keys looked for: result is hit (known in memory) or miss (asked of Redis).',
    labels: ['result'],
  }, () => keys === undefined ? [] : [[{ result: 'hit' }, keys.hits], [{ result: 'miss' }, keys.misses]])
  families.counter({
    name: 'handoff_keys_refused_total',
    help: 'Keys let in nowhere: reason is unknown (mistyped, ended or revoked as well), shed (too many unknown ones at once) or throttled (their address failed too often).',
    labels: ['reason'],
  }, () => keys === undefined ? [] : [[{ reason: 'unknown' }, keys.refused], [{ reason: 'shed' }, keys.shed], [{ reason: 'throttled' }, keys.throttled]])
  families.counter({
    name: 'handoff_requests_refused_total',
    help: 'Requests refused for their number: reason is rate_limited (their agent’s limit, 429) or shed (more than this process can serve, 503).',
    labels: ['reason'],
  }, () => refused === undefined ? [] : [[{ reason: 'rate_limited' }, refused.limited], [{ reason: 'shed' }, refused.shed]])
}

function storeFamilies (families: Families, { store, isDraining }: Sources): void {
  families.histogram({
    name: 'handoff_redis_call_duration_seconds',
    help: 'From asking Redis for a script until its answer counts or is given up (after 2 s), in seconds; parking and asking again are in it.',
  }, () => store.scripts.map(({ name, took }) => [{ script: name }, took]))
  families.gauge({
    name: 'handoff_lane_calls',
    help: 'Calls of each Redis master: state is under_way or parked (not connected, or behind a group). "unknown": no master is known.',
    labels: ['master', 'state'],
  }, () => store.laneSizes().flatMap(({ master, underWay, parked }) => [[{ master, state: 'under_way' }, underWay], [{ master, state: 'parked' }, parked]]))
  families.gauge({
    name: 'handoff_ready',
    help: '1 where requests may be sent here, 0 where Redis can’t serve or the service is stopping; as of the last look, every 5 s.',
  }, () => store.ready === undefined ? [] : [[{}, store.ready && !isDraining() ? 1 : 0]])
}

/** Only the replica that sweeps knows: the others tell none of it but that they don't. */
function sweepFamilies (families: Families, { sweeper }: Pick<Store, 'sweeper'>): void {
  const where = (read: (counts: SweepCounts) => number | undefined) => () => {
    const value = sweeper.counts === undefined ? undefined : read(sweeper.counts)
    return value === undefined ? [] : [[{}, value] as [Record<string, never>, number]]
  }
  const seconds = (milliseconds: number | undefined) => milliseconds === undefined ? undefined : milliseconds / 1000
  families.gauge({ name: 'handoff_sweeping', help: '1 where this replica sweeps, 0 elsewhere: one of all should.' },
    () => [[{}, sweeper.counts === undefined ? 0 : 1]])
  families.gauge({ name: 'handoff_sweep_lag_seconds', help: 'How long ago the partition was swept that has waited longest, in seconds; about 2.5 where all is well. Of who sweeps.' },
    where(({ lag }) => seconds(lag)))
  families.gauge({ name: 'handoff_live_handoffs', help: 'Handoffs pending or caught, as the last round found them. Of who sweeps.' },
    where(({ whole }) => whole?.live))
  families.gauge({ name: 'handoff_oldest_due_age_seconds', help: 'How long ago the earliest deadline passed that is not swept yet, in seconds, 0 where there is none; up to 2.5 where all is well. Of who sweeps.' },
    where(({ whole }) => seconds(whole?.oldestDueAge)))
}
