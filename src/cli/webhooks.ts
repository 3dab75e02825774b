import { loadProcessConfig } from '../config.ts'
import type { Config } from '../config.ts'
import { Lookups } from '../core/lookups.ts'
import { localWebhookSecret } from '../embedded/start.ts'
import { Problem, errorTable } from '../core/errors.ts'
import { newKeyId, newSecret } from '../store/api-keys.ts'
import type { Labels } from '../core/labels.ts'
import type { DeliveryStatus } from '../core/model.ts'
import { WebhookSecrets } from '../webhooks/sender.ts'
import { WebhookService, defaultGrace, madeAtOnce } from '../webhooks/service.ts'
import { Targets } from '../webhooks/targets.ts'
import { Failure, notWritten, outputFault, print, table } from '../clients/typescript/command/output.ts'
import { printJson } from './output.ts'
import { withStore } from './redis.ts'

interface Options { tenant: string, json?: boolean }
interface Members {
  id: string
  url: string
  types: string[] | null
  inbox: string | null
  format?: string
  labels?: Record<string, string>
  include?: string[]
  updates?: boolean
  timezone?: string
  enabled: boolean
  disabled_because?: string
  created_at: string
}
interface Listed {
  id: string
  type: string
  status: string
  attempts: number
  last_status: number | null
  last_error: string | null
  why?: string
  last_at: string | null
  next_at: string | null
}

interface CreateOptions {
  url: string
  format?: string
  types?: string
  inbox?: string
  label?: Labels
  include?: string
  updates?: boolean
  timezone?: string
}

export async function createWebhook (
  { url, format, types, inbox, label, include, updates, timezone, ...options }: Options & CreateOptions
): Promise<void> {
  const made = await run(options, service => service.create(options.tenant, {
    url,
    format: format ?? null,
    types: types?.split(',') ?? null,
    inbox: inbox ?? null,
    labels: label ?? null,
    include: include?.split(',') ?? null,
    updates: updates ?? null,
    timezone: timezone ?? null
  })) as (Members & { secret: string }) | undefined
  if (made !== undefined) {
    print(`${lines(made)}\nsecret   ${made.secret}\nThe secret is shown only once: give it to ` +
    'the receiver, which verifies messages with it.')
  }
  await secretArrived()
}

export async function listWebhooks (options: Options): Promise<void> {
  const answer = await run(options, service => service.list(options.tenant)) as { items: Members[] } | undefined
  if (answer === undefined) return
  if (answer.items.length === 0) return print(`the tenant ${options.tenant} has no webhooks`)
  print(table([['id', 'url', 'types', 'inbox', 'state', 'created'],
    ...answer.items.map(one =>
      [one.id, one.url, one.types?.join() ?? 'all', one.inbox ?? 'any', stateOf(one), one.created_at])]))
}

export async function getWebhook (id: string, options: Options): Promise<void> {
  const found = await run(options, service => service.get(options.tenant, id)) as Members | undefined
  if (found !== undefined) print(lines(found))
}

/** The API answers a deletion with nothing; so does `--json`, with null. */
export async function deleteWebhook (id: string, options: Options): Promise<void> {
  const answer = await run(options, service => service.delete(options.tenant, id).then(() => null))
  if (answer !== undefined) print(`deleted: ${id} gets nothing more`)
}

export async function rotateWebhook (
  id: string, { grace = defaultGrace, ...options }: Options & { grace?: number }
): Promise<void> {
  const rotated = await run(options, service => service.rotate(options.tenant, id, grace)) as {
    secret: string
    old_secret_until: string
  } | undefined
  if (rotated !== undefined) {
    print(`secret   ${rotated.secret}\nold      signs as well until ` +
    `${rotated.old_secret_until}\nThe secret is shown only once: give it to the receiver.`)
  }
  await secretArrived()
}

/** @throws {Failure} it was made, but wasn't shown */
async function secretArrived (): Promise<void> {
  const fault = await outputFault()
  if (fault !== undefined) {
    throw new Failure('the secret is lost: have a new one made (handoff webhooks rotate; ' +
    `list has the id): ${notWritten(fault)}`)
  }
}

export async function enableWebhook (id: string, options: Options): Promise<void> {
  const enabled = await run(options, service => service.enable(options.tenant, id))
  if (enabled !== undefined) print(`enabled: ${id} gets the events from now on; replay what it missed`)
}

export async function testWebhook (id: string, options: Options): Promise<void> {
  const answer = await run(options, service => service.test(options.tenant, id)) as { id: string } | undefined
  if (answer !== undefined) print(`${answer.id} will be sent: see handoff webhooks deliveries ${id}`)
}

export async function listDeliveries (
  id: string, { status, ...options }: Options & { status?: DeliveryStatus }
): Promise<void> {
  const answer =
    await run(options, service => service.deliveries(options.tenant, id, status)) as { items: Listed[] } | undefined
  if (answer === undefined) return
  if (answer.items.length === 0) return print('there are no such deliveries')
  print(table([['id', 'type', 'status', 'attempts', 'answer', 'last', 'next', 'why'],
    ...answer.items.map(one => [
      one.id, one.type, one.status, String(one.attempts), String(one.last_status ?? one.last_error ?? ''),
      one.last_at ?? '', one.next_at ?? '', one.why ?? ''
    ])]))
}

export async function replayWebhook (id: string, { since, ...options }: Options & { since: string }): Promise<void> {
  const answer = await run(options, service => service.replay(options.tenant, id, since)) as {
    replayed: number
    more?: boolean
  } | undefined
  if (answer !== undefined) {
    print(`${answer.more === true ? 'at least ' : ''}${answer.replayed} events will be sent again`)
  }
}

/**
 * Asks what the API asks. With `--json` it prints the answer.
 * @returns the answer for people; undefined where it is printed already
 */
async function run (
  options: Options, call: (service: WebhookService) => Promise<object | null>
): Promise<object | null | undefined> {
  const config = loadProcessConfig()
  const secret = await secretOf(config)
  const answer = await withStore(config, config.replicas, async ({ events, webhooks }) => {
    const isOn = events !== null && webhooks !== null && secret !== undefined
    if (!isOn) return call(new WebhookService(null))
    // The service that delivers decides; where none does, this command's own settings must say what its will.
    const allowed = await webhooks.allowed() ?? { webhooks: config.webhookAllow, mail: config.mail?.allow ?? null }
    return call(new WebhookService({
      events,
      webhooks,
      secrets: new WebhookSecrets(secret),
      mail: allowed.mail === null ? undefined : { allow: allowed.mail },
      targets: new Targets(allowed.webhooks, new Lookups({ atOnce: madeAtOnce }))
    }))
  }).catch(error => { throw error instanceof Problem ? failureOf(error) : error })
  if (options.json !== true) return answer
  printJson(answer)
  return undefined
}

/** As the service that `npm start` runs has it, where nothing else is said. */
async function secretOf ({ webhookSecret, redisUrl, dataDir, eventsRetention }: Config): Promise<string | undefined> {
  if (webhookSecret !== undefined || redisUrl !== undefined || eventsRetention === 0) return webhookSecret
  return localWebhookSecret(dataDir, () => newSecret(newKeyId()))
}

function failureOf ({ code, more }: Problem): Failure {
  const faults = more.members?.errors as Array<{ pointer: string, message: string }> | undefined
  if (code === 'events_off') {
    return new Failure('webhooks are off: set EVENTS_RETENTION and WEBHOOK_SECRET as the service has them')
  }
  if (code === 'not_found') return new Failure('this tenant has no webhook with this id: see handoff webhooks list')
  return new Failure(faults?.map(({ pointer, message }) => `${pointer.slice(1)} ${message}`).join('; ') ??
    more.detail ?? errorTable[code].detail)
}

function stateOf ({ enabled, disabled_because: because }: Members): string {
  return enabled ? 'enabled' : `disabled (${because})`
}

function lines (webhook: Members): string {
  const { id, url, format = 'mail', types, inbox, labels, include, updates, timezone, created_at: createdAt } = webhook
  return [
    `id       ${id}`,
    `url      ${url}`,
    ...format === 'standard' ? [] : [`format   ${format}`],
    `types    ${types?.join(', ') ?? 'all'}`,
    `inbox    ${inbox ?? 'any'}`,
    ...labels === undefined ? [] : [`labels   ${Object.entries(labels).map(label => label.join(':')).join(', ')}`],
    ...include === undefined ? [] : [`include  ${include.join(', ')}`],
    ...updates === true ? ['updates  decisions and answers'] : [],
    ...timezone === undefined ? [] : [`times    ${timezone}`],
    `state    ${stateOf(webhook)}`,
    `created  ${createdAt}`
  ].join('\n')
}
