import { createHash } from 'node:crypto'
import { urlPattern } from '../core/callback.ts'
import type { PushConfig, PushConfigs } from '../store/push-configs.ts'
import { mostConfigs } from '../store/push-configs.ts'
import type { HandoffPlace } from '../store/handoffs.ts'
import type { Targets } from '../webhooks/targets.ts'
import { A2aError, invalidParams } from './errors.ts'
import type { Fields } from './fields.ts'

export interface PushParts { configs: PushConfigs, targets: Pick<Targets, 'faultOf' | 'literalFault'> }

/** A token, a scheme, and credentials are sent in header fields. */
const headerShape = /^[!-~]{1,1024}$/
const urlShape = new RegExp(urlPattern)
/** How long an id may be, in characters. */
const longestId = 256

/** The push configs of a task, as agents' clients make, read, list and delete them. */
export class PushCalls {
  readonly #parts: PushParts | null

  /** @param parts null where the service sends nothing (WEBHOOK_SECRET) */
  constructor (parts: PushParts | null) {
    this.#parts = parts
  }

  /** @throws {A2aError} the service sends nothing */
  check (): void {
    if (this.#parts === null) throw new A2aError('PushNotificationNotSupported')
  }

  /** A config as a client sends it. @throws {A2aError} */
  configIn (fields: Fields): PushConfig {
    const { targets } = this.#on
    const address = fields.string('url')
    const wrongUrl = address === undefined
      ? 'required'
      : urlShape.test(address)
        ? targets.faultOf(address) ?? targets.literalFault(address)
        : 'must have 1 to 2048 visible ASCII characters'
    if (wrongUrl !== null) throw invalidParams(fields.at('url'), wrongUrl)
    const authentication = fields.object('authentication')
    const scheme = authentication && headerText(authentication, 'scheme')
    if (authentication !== undefined && scheme === undefined) {
      throw invalidParams(authentication.at('scheme'), 'required')
    }
    const id = fields.string('id') || undefined
    if (id !== undefined && id.length > longestId) {
      throw invalidParams(fields.at('id'), `must have at most ${longestId} characters`)
    }
    const config: Omit<PushConfig, 'id'> = {
      url: new URL(address!).href,
      token: headerText(fields, 'token'),
      authentication: scheme === undefined
        ? undefined
        : { scheme, credentials: headerText(authentication!, 'credentials') }
    }
    return { id: id ?? configId(config), ...config }
  }

  /** @param since a new one is sent what changed after this change; null for nothing @throws {A2aError} */
  async keep (task: HandoffPlace, agent: string, config: PushConfig, since: number | null): Promise<void> {
    const outcome = await this.#on.configs.keep(task, agent, config, since)
    if (outcome === 'many') throw tooMany()
    if (outcome === 'not_found') throw new A2aError('TaskNotFound')
  }

  /** @throws {A2aError} the task has as many as it may, and none with this id */
  async checkRoom (task: HandoffPlace, { id }: PushConfig): Promise<void> {
    const known = await this.#read(task)
    if (known.length >= mostConfigs && !known.some(({ config }) => config.id === id)) throw tooMany()
  }

  /** @param task whose it is, checked */
  async create (task: HandoffPlace, agent: string, params: Fields): Promise<Buffer> {
    const config = this.configIn(params)
    await this.keep(task, agent, config, null)
    return Buffer.from(configText(task.id, config))
  }

  async get (task: HandoffPlace, id: string): Promise<Buffer> {
    const found = (await this.#read(task)).find(({ config }) => config.id === id)
    if (found === undefined) throw new A2aError('TaskNotFound', 'This task has no push config of this id')
    return Buffer.from(configText(task.id, found.config))
  }

  async list (task: HandoffPlace, params: Fields): Promise<Buffer> {
    const size = params.integer('pageSize', 1, 100) ?? mostConfigs
    const token = params.string('pageToken') || '0'
    if (!/^\d$/.test(token)) throw invalidParams(params.at('pageToken'), 'is none of a page')
    const [all, from] = [await this.#read(task), Number(token)]
    const texts = all.slice(from, from + size).map(({ config }) => configText(task.id, config))
    const next = all.length > from + size ? String(from + size) : ''
    return Buffer.from(`{"configs":[${texts.join(',')}],"nextPageToken":"${next}"}`)
  }

  /** One that isn't there counts as deleted. */
  async delete (task: HandoffPlace, id: string): Promise<Buffer> {
    const found = (await this.#read(task)).find(({ config }) => config.id === id)
    if (found !== undefined) await this.#on.configs.delete(task, found.number)
    return Buffer.from('{}')
  }

  async #read (task: HandoffPlace) {
    const found = await this.#on.configs.read(task)
    if (found === null) throw new A2aError('TaskNotFound')
    return found
  }

  get #on (): PushParts {
    this.check()
    return this.#parts!
  }
}

function tooMany (): A2aError {
  return new A2aError(
    'InvalidParams', `A task has at most ${mostConfigs} push configs: delete one, or send its id to replace it`
  )
}

function headerText (fields: Fields, name: string): string | undefined {
  const text = fields.string(name) || undefined
  if (text !== undefined && !headerShape.test(text)) {
    throw invalidParams(fields.at(name), 'must be 1 to 1024 visible ASCII characters')
  }
  return text
}

/** The id of a config that came without one: by its address, since ids are shown and secrets aren't. */
function configId ({ url }: Omit<PushConfig, 'id'>): string {
  return `push-${createHash('sha256').update(url).digest('base64url').slice(0, 22)}`
}

/** What anyone may see of it: neither its token nor its credentials. */
function configText (taskId: string, { id, url, authentication }: PushConfig): string {
  return JSON.stringify({ taskId, id, url, ...authentication && { authentication: { scheme: authentication.scheme } } })
}
