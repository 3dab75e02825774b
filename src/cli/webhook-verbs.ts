import type { Command } from 'commander'
import { webhookTypes } from '../model.ts'
import { parseSeconds } from './agent/values.ts'
import { UsageError } from './failure.ts'
import { parseName } from './values.ts'

const json = 'print what the API answers, on one line'

/** The operator's verbs for webhooks. Each needs Redis and WEBHOOK_SECRET, and no key. */
export function addWebhookVerbs (program: Command): void {
  const webhooks = program.command('webhooks').description('create, list, test and delete webhooks, and see what they were sent')

  const verb = (name: string, description: string) => webhooks.command(name)
    .description(description)
    .option('--tenant <tenant>', 'the tenant whose events they get', (text: string) => parseName('--tenant', text), 'default')
    .option('--json', json)
  const one = (name: string, description: string) => verb(name, description).argument('<id>', 'as create and list show it')
  const load = () => import('./webhooks.ts')

  verb('create', 'have events sent to a URL, and show the secret that signs them once')
    .requiredOption('--url <url>', 'an https URL of a public address, or what WEBHOOK_ALLOW names')
    .option('--types <types>', `only events of these types, separated by commas: ${webhookTypes.join(', ')}`)
    .option('--inbox <inbox>', 'only events of handoffs for this inbox', (text: string) => parseName('--inbox', text))
    .action(async options => (await load()).createWebhook(options))
  verb('list', 'list a tenant’s webhooks, the oldest first').action(async options => (await load()).listWebhooks(options))
  one('get', 'show a webhook').action(async (id, options) => (await load()).getWebhook(id, options))
  one('delete', 'delete a webhook with its deliveries').action(async (id, options) => (await load()).deleteWebhook(id, options))
  one('rotate', 'give a webhook a new secret and show it once')
    .option('--grace <duration>', 'how long the old secret signs as well: 0s, 15m, 48h; 24h by default', (text: string) => parseSeconds('--grace', text))
    .action(async (id, options) => (await load()).rotateWebhook(id, options))
  one('enable', 'enable a webhook that was disabled; it gets the events from now on').action(async (id, options) => (await load()).enableWebhook(id, options))
  one('test', 'have a message of type webhook.test sent').action(async (id, options) => (await load()).testWebhook(id, options))
  one('deliveries', 'list the newest 100 deliveries')
    .option('--status <status>', 'only those: pending, delivered or failed', parseStatus)
    .action(async (id, options) => (await load()).listDeliveries(id, options))
  one('replay', 'have events sent again')
    .requiredOption('--since <event>', 'from which on, that one included: an event’s id, or a time as in 2026-11-20T09:00:00Z')
    .action(async (id, options) => (await load()).replayWebhook(id, options))
}

function parseStatus (text: string): string {
  if (!['pending', 'delivered', 'failed'].includes(text)) throw new UsageError('--status takes pending, delivered or failed')
  return text
}
