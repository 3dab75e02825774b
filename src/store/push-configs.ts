import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { inAscii } from './asks.ts'
import type { HandoffPlace } from './handoffs.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'

/** An address that an A2A task's changes are sent to. */
export interface PushConfig {
  id: string
  url: string
  /** Sent as X-A2A-Notification-Token. */
  token?: string | undefined
  /** Sent as Authorization. */
  authentication?: { scheme: string, credentials?: string | undefined } | undefined
}

/** A config of a task. `number` is the same for as long as its id is there; `sent`: which change it was sent last. */
interface KeptConfig { number: number, sent: number, config: PushConfig }

/** How many configs a task has at most. */
export const mostConfigs = 5

/** The push configs of A2A tasks in Redis. Scripts of transitions note what is to be sent (lua/lib/tasks.lua). */
export class PushConfigs {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #payloadKeys: PayloadKeys

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, payloadKeys = new PayloadKeys()) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
  }

  /** @returns null if there is no such task */
  read (task: HandoffPlace): Promise<KeptConfig[] | null> {
    return this.#lanes.call({
      script: this.#scripts.pushes,
      tag: task.tag,
      keys: [this.#keyOf(task)],
      texts: [],
      decode: reply => {
        const [outcome, lines] = tagged(reply)
        return outcome === 'not_found' ? null : String(lines).split('\n').filter(line => line !== '').map(readConfig)
      }
    })
  }

  /**
   * Keeps a config, in place of the one with its id.
   * @param since the number of a change: a new config is sent what changed the state after it; null for nothing
   */
  keep (
    task: HandoffPlace, passedBy: string, config: PushConfig, since: number | null
  ): Promise<'kept' | 'many' | 'not_found'> {
    const seal = new Seal(this.#payloadKeys, task)
    return this.#lanes.call({
      script: this.#scripts['push-set'],
      tag: task.tag,
      keys: [this.#keyOf(task)],
      texts: [
        inAscii(config.id), inAscii(JSON.stringify(this.#withSecrets(config, secret => seal.secret('push', secret)))),
        String(mostConfigs), passedBy,
        since === null ? '' : String(since)
      ],
      decode: reply => tagged(reply)[0] as 'kept' | 'many' | 'not_found'
    })
  }

  /** The config with its secrets. @throws {PayloadLocked} @throws {PayloadBroken} */
  open (task: HandoffPlace, config: PushConfig): PushConfig {
    const seal = new Seal(this.#payloadKeys, task)
    return this.#withSecrets(config, secret => seal.openSecret('push', secret))
  }

  #withSecrets (config: PushConfig, change: (secret: string) => string): PushConfig {
    const { token, authentication } = config
    return {
      ...config,
      ...token !== undefined && { token: change(token) },
      ...authentication?.credentials !== undefined && {
        authentication: { ...authentication, credentials: change(authentication.credentials) }
      }
    }
  }

  /** @param number of the config */
  delete (task: HandoffPlace, number: number): Promise<void> {
    return this.#note(task, number, '')
  }

  /** Notes which change a config was sent. @param number of the config */
  noteSent (task: HandoffPlace, number: number, change: number): Promise<void> {
    return this.#note(task, number, String(change))
  }

  #note (task: HandoffPlace, number: number, change: string): Promise<void> {
    return this.#lanes.call({
      script: this.#scripts['push-note'],
      tag: task.tag,
      keys: [this.#keyOf(task)],
      texts: [String(number), change],
      decode: () => {}
    })
  }

  #keyOf ({ tag, tenant, id }: HandoffPlace): string {
    return this.#keyNames.task(tag, memberOf(tenant, id))
  }
}

function readConfig (line: string): KeptConfig {
  const [number, sent, digest] = line.split(' ', 3) as [string, string, string]
  const json = line.slice(number.length + sent.length + digest.length + 3)
  return { number: Number(number), sent: Number(sent), config: JSON.parse(json) as PushConfig }
}
