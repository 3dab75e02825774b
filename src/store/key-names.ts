import type { Asked } from '../core/model.ts'

/**
 * Builds every Redis key; no other file does. In a Cluster all keys that one script touches carry the same hash tag, so
 * a call is one hop to one shard. A handoff's key contains the tenant, so another tenant's handoff simply isn't found.
 */
export class KeyNames {
  readonly #prefix: string
  readonly #isOneRedis: boolean

  /**
   * @param isOneRedis then feeds and runs are in no partition, so that scripts of any can write to them
   */
  constructor (prefix: string, isOneRedis = false) {
    this.#prefix = prefix
    this.#isOneRedis = isOneRedis
  }

  /** The prefix of all keys of a partition: `prefix:{tag}:`. */
  partition (tag: string): string {
    return `${this.#prefix}:{${tag}}:`
  }

  /** What the keys of all partitions begin with. */
  partitions (): string {
    return `${this.#prefix}:{`
  }

  handoff (tag: string, member: string): string {
    return `${this.partition(tag)}h:${member}`
  }

  /** The keys of all handoffs, or of all that lies in partitions, as a pattern of Redis's. */
  pattern (of: 'handoffs' | 'all'): string {
    return `${this.#prefix.replace(/[*?[\]\\]/g, '\\$&')}:{*}:${of === 'handoffs' ? 'h:' : ''}*`
  }

  /** A handoff's dependents (lua/lib/after.lua). */
  dependents (tag: string, member: string): string {
    return `${this.partition(tag)}d:${member}`
  }

  /** A tenant's live handoffs of a partition, by when the sweep is to look at them (lua/lib/due.lua). */
  due (tag: string, tenant: string): string {
    return `${this.partition(tag)}due:${tenant}`
  }

  /** The tenants that have live handoffs in a partition, by when the sweep is to look at them. */
  tenants (tag: string): string {
    return `${this.partition(tag)}tenants`
  }

  /**
   * A tenant's handoffs that wait for a person, by when they were passed: on one Redis all in its home partition, in a
   * Cluster each in its own.
   */
  waiting (tag: string, tenant: string): string {
    return `${this.partition(tag)}w:${tenant}`
  }

  /** What people of a tenant decided and answered here, by when (lua/lib/decisions.lua). */
  decisions (tag: string, tenant: string): string {
    return `${this.partition(tag)}decisions:${tenant}`
  }

  /** What is known of that, of one handoff. */
  decisionsOf (tag: string, tenant: string, id: string): string {
    return `${this.decisions(tag, tenant)}:${id}`
  }

  /**
   * The handoffs that can be caught from a tenant's inbox, by position. Its other lists and its settings are beside it
   * (lua/lib/inbox.lua).
   */
  inbox (tag: string, tenant: string, inbox: string): string {
    return `${this.partition(tag)}i:${tenant}:${inbox}`
  }

  /** The A2A card of an inbox, in the inbox's own partition. */
  card (tag: string, tenant: string, inbox: string): string {
    return `${this.inbox(tag, tenant, inbox)}:card`
  }

  /** An A2A task: how it stands (lua/lib/tasks.lua). Its changes are beside it. */
  task (tag: string, member: string): string {
    return `${this.partition(tag)}task:${member}`
  }

  /** The A2A tasks that an agent sent to an inbox, by when their state began. */
  tasks (tag: string, tenant: string, inbox: string, agent: string): string {
    return `${this.partition(tag)}tasks:${tenant}:${inbox}:${agent}`
  }

  /** The replicas at which requests wait for a tenant's inboxes, by when they noted that. */
  listening (tag: string, tenant: string): string {
    return `${this.partition(tag)}l:${tenant}`
  }

  /** What one of them noted. */
  listeningAt (tag: string, tenant: string, replica: string): string {
    return `${this.listening(tag, tenant)}:${replica}`
  }

  /** The names of the inboxes that have something here. */
  inboxes (tag: string): string {
    return `${this.partition(tag)}inboxes`
  }

  /** A tenant's handoffs that ended without being done and have no successor, by when they ended. */
  failed (tag: string, tenant: string): string {
    return `${this.partition(tag)}f:${tenant}`
  }

  /** The same: an inbox's. */
  failedIn (tag: string, tenant: string, inbox: string): string {
    return `${this.inbox(tag, tenant, inbox)}:failed`
  }

  /** A tenant's ended handoffs that were passed with an inbox or labels (lua/lib/ended.lua). */
  ended (tag: string, tenant: string): string {
    return `${this.partition(tag)}ended:${tenant}`
  }

  /** A run's handoffs: live ones, ended ones, failed ones, and its counts (lua/lib/runs.lua). */
  run (tag: string, list: 'run' | 'ran' | 'lost' | 'total' | 'count', tenant: string, label: string): string {
    return `${this.#shared(tag)}${list}:${tenant}:${label}`
  }

  /** The values of a label that makes runs. */
  runs (tag: string, tenant: string, name: string): string {
    return `${this.#shared(tag)}runs:${tenant}:${name}`
  }

  /** The runs whose counts changed in a partition of a Cluster. */
  changedRuns (tag: string): string {
    return `${this.partition(tag)}runs`
  }

  /** The beginning of keys that are in no partition if one Redis has all. */
  #shared (tag: string): string {
    return this.#isOneRedis ? `${this.#prefix}:` : this.partition(tag)
  }

  /** The beginning of all keys, if a list may have handoffs of all partitions; else empty. */
  ofAll (): string {
    return this.#isOneRedis ? `${this.#prefix}:` : ''
  }

  /** A tenant's handoffs with an open question, by when it was asked. */
  asks (tag: string, tenant: string, of: Asked): string {
    return `${this.partition(tag)}a:${tenant}${of === 'passer' ? ':passer' : ''}`
  }

  /** The channel for changes of those lists, where one Redis has all partitions. */
  asksChannel (tenant: string): string {
    return `${this.#prefix}:a:${tenant}`
  }

  /** The handoffs that a catch from an inbox took, by its token. */
  taken (tag: string, token: string): string {
    return `${this.partition(tag)}n:${token}`
  }

  /**
   * Which request an Idempotency-Key of an inbox came with, or which handoff one of a schedule's run stands for. The
   * name differs from `taken`, since both may be in one partition.
   */
  request (tag: string, token: string): string {
    return `${this.partition(tag)}q:${token}`
  }

  /** A tenant's events of this partition that may not be in the feed yet (lua/lib/appending.lua). */
  outbox (tag: string, tenant: string): string {
    return `${this.outboxes(tag)}:${tenant}`
  }

  /** The tenants that have an outbox here, by the number of their last event. */
  outboxes (tag: string): string {
    return `${this.partition(tag)}o`
  }

  /** A tenant's events, in one order; and the channel where new ones are announced. */
  feed (tag: string, tenant: string): string {
    return this.#isOneRedis ? this.feeds() + tenant : `${this.partition(tag)}e:${tenant}`
  }

  /** The beginning of all feeds' keys, if one Redis has them. */
  feeds (): string {
    return `${this.#prefix}:e:`
  }

  /** Since when nothing of the feed was lost. */
  feedSince (tag: string, tenant: string): string {
    return `${this.feed(tag, tenant)}:since`
  }

  /** How far each partition's events are in the feed. */
  relayed (tag: string, tenant: string): string {
    return `${this.feed(tag, tenant)}:moved`
  }

  /** The replica that looks for events that none has moved to their feed. */
  relay (tag: string): string {
    return `${this.partition(tag)}relay`
  }

  /** The tenants that have webhooks here. */
  webhookTenants (tag: string): string {
    return `${this.partition(tag)}hooks`
  }

  /** A tenant's webhooks by when they were made. */
  webhooks (tag: string, tenant: string): string {
    return `${this.webhookTenants(tag)}:${tenant}`
  }

  webhook (tag: string, tenant: string, id: string): string {
    return `${this.partition(tag)}hook:${tenant}:${id}`
  }

  /** A webhook's deliveries by when each is tried next. */
  webhookDue (tag: string, tenant: string, id: string): string {
    return `${this.webhook(tag, tenant, id)}:due`
  }

  /** A webhook's deliveries: those to come, and the newest that succeeded, failed or were summarised. */
  deliveries (
    tag: string, tenant: string, id: string, status: 'pending' | 'delivered' | 'failed' | 'summarised'
  ): string {
    return `${this.webhook(tag, tenant, id)}:${status}`
  }

  /** The tenants that have callbacks to be delivered here (lua/lib/events.lua). */
  callbackTenants (tag: string): string {
    return `${this.partition(tag)}calls`
  }

  /** The channel that announces them, where one Redis has all partitions. */
  callbackChannel (): string {
    return `${this.#prefix}:calls`
  }

  /** A tenant's by when each is due. */
  callbacks (tag: string, tenant: string): string {
    return `${this.callbackTenants(tag)}:${tenant}`
  }

  callback (tag: string, tenant: string, id: string): string {
    return `${this.partition(tag)}call:${tenant}:${id}`
  }

  /** Which secret signs the callbacks of an agent. */
  callbackSecret (tag: string, tenant: string, agent: string): string {
    return `${this.partition(tag)}secret:${tenant}:${agent}`
  }

  /** The addresses to which the delivering replica may send. */
  allowed (tag: string): string {
    return `${this.partition(tag)}allowed`
  }

  /** The replica that delivers to webhooks. */
  deliverer (tag: string): string {
    return `${this.partition(tag)}deliverer`
  }

  /** A tenant's schedules by name. */
  schedules (tag: string, tenant: string): string {
    return `${this.schedulesDue(tag)}:${tenant}`
  }

  /** The schedules of a partition, by when each is looked at next; and the channel that announces changes of it. */
  schedulesDue (tag: string): string {
    return `${this.partition(tag)}schedules`
  }

  /**
   * A schedule. `runs`: its newest runs; `ran`: its ticks that ran; `begun`: runs that were asked for and aren't noted.
   * Without a name, what such keys begin with.
   */
  schedule (tag: string, tenant: string, name: string, beside?: 'runs' | 'ran' | 'begun'): string {
    return `${this.partition(tag)}schedule:${tenant}:${name}${beside === undefined ? '' : `:${beside}`}`
  }

  /** Up to which tick a schedule has come, or the ticks that ran last, beside its handoffs (lua/lib/ticks.lua). */
  ticks (tag: string, tenant: string, name: string, which: 'tick' | 'ticked'): string {
    return `${this.partition(tag)}${which}:${tenant}:${name}`
  }

  /** The lease of the replica that runs schedules. */
  ticker (tag: string): string {
    return `${this.partition(tag)}ticker`
  }

  /** Where a search in a list ended, by a digest of who searches and for what. */
  search (tag: string, digest: string): string {
    return `${this.partition(tag)}search:${digest}`
  }

  /** A person's session, by its secret's digest. */
  session (tag: string, digest: string): string {
    return `${this.partition(tag)}s:${digest}`
  }

  /** An API key, by its id. */
  apiKey (tag: string, id: string): string {
    return `${this.partition(tag)}k:${id}`
  }

  /** All API keys by when they were made. */
  apiKeys (tag: string): string {
    return `${this.partition(tag)}keys`
  }

  /** The API keys that end or have ended, by when they are forgotten. */
  apiKeysOver (tag: string): string {
    return `${this.partition(tag)}keys:over`
  }

  /** The log of changes of API keys, and the channel that announces them. */
  apiKeysLog (tag: string): string {
    return `${this.partition(tag)}keys:log`
  }

  /** The limits that operators set for agents and tenants, in requests a minute. */
  limits (tag: string): string {
    return `${this.partition(tag)}limits`
  }

  /** The limits of how many handoffs of theirs may be live. */
  liveLimits (tag: string): string {
    return `${this.limits(tag)}:live`
  }

  /** Whose tokens operators blocked. */
  blockedTokens (tag: string): string {
    return `${this.partition(tag)}blocked`
  }

  /** How many requests an agent has taken of its window, or, as `*`, all of the tenant (store/rates.ts). */
  rate (tag: string, tenant: string, agent: string): string {
    return `${this.partition(tag)}r:${tenant}:${agent}`
  }

  /** The lease of the replica that sweeps; 0.2.0 has another one, since its sweep doesn't know the tenants' indexes. */
  sweeper (tag: string): string {
    return `${this.partition(tag)}sweeps`
  }

  /** The lease of the replica of version 0.2.0 that sweeps. */
  formerSweeper (tag: string): string {
    return `${this.partition(tag)}sweeper`
  }

  /** Which payload keys the replicas have, by replica. */
  payloadKeys (tag: string): string {
    return `${this.partition(tag)}payload-keys`
  }

  /** The key that a group writes last: replicas that acknowledge it have all that was written before. */
  barrier (tag: string): string {
    return `${this.partition(tag)}barrier`
  }

  /** A file that was uploaded; which partitions may have handoffs with it; or which handoffs of a partition do. */
  file (tag: string, tenant: string, id: string, which: 'file' | 'keeping' | 'having' = 'file'): string {
    return `${this.partition(tag)}${which}:${tenant}:${id}`
  }

  /** A tenant's files by when the sweep looks at them; without one, the tenants with files by the same. */
  files (tag: string, tenant?: string): string {
    return `${this.partition(tag)}files${tenant === undefined ? '' : `:${tenant}`}`
  }

  /** How many bytes the tenants declared; in one partition, which store the records are of; who sweeps files. */
  ofFiles (tag: string, which: 'shares' | 'filestore' | 'filesweep'): string {
    return `${this.partition(tag)}${which}`
  }

  /** The mark of the data set, written again and again to show that Redis takes writes. */
  dataSet (tag: string): string {
    return `${this.partition(tag)}dataset`
  }

  /** When a replica noticed that the data set was gone, or another one. */
  dataSetReplaced (tag: string): string {
    return `${this.partition(tag)}dataset:replaced`
  }
}

/** A handoff's name in its partition's sorted sets, and the end of its key. */
export function memberOf (tenant: string, id: string): string {
  return `${tenant}:${id}`
}

/** Splits such a member, as Redis returns it, into tenant and id. Neither contains a colon. */
export function handoffOfMember (member: unknown): { tenant: string, id: string } {
  const [tenant, id] = String(member).split(':') as [string, string]
  return { tenant, id }
}
