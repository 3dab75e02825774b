import type { Config } from '../config.ts'
import { Lookups } from '../core/lookups.ts'
import type { LookupOptions } from '../core/lookups.ts'
import type { Store } from '../store/store.ts'
import { WebhookSecrets } from './sender.ts'
import { madeAtOnce } from './service.ts'
import { Targets } from './targets.ts'

/** What differs in tests. */
export interface WebhookTrials { lookups?: Partial<LookupOptions>, attemptTimeout?: number }

interface WebhookDependencies { webhookSecret?: string | undefined, webhooks?: WebhookTrials | undefined }

/** What is sent to addresses that users chose. @returns null where nothing is */
export function webhookParts (
  config: Config,
  baseUrl: () => string,
  { webhooks }: Pick<Store, 'webhooks'>,
  { webhookSecret, ...more }: WebhookDependencies
) {
  if (webhookSecret === undefined) return null
  const secrets = new WebhookSecrets(webhookSecret)
  return { webhooks, secrets, baseUrl, mail: config.mail, targets: targetsFor(config, madeAtOnce, more) }
}

/** @param atOnce names of a tenant. Making webhooks has a share of its own, so that it holds up no deliveries */
export function targetsFor (
  { webhookAllow }: Config, atOnce: number, { webhooks: more }: WebhookDependencies
): Targets {
  return new Targets(webhookAllow, new Lookups({ atOnce, ...more?.lookups }))
}
