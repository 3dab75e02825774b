import { TooLarge } from '../core/errors.ts'
import type { Callback, Callbacks } from '../store/callbacks.ts'
import type { PushConfig, PushConfigs } from '../store/push-configs.ts'
import { readChange } from '../store/tasks.ts'
import type { TaskSeen, Tasks } from '../store/tasks.ts'
import type { PushMessage, PushSource } from '../webhooks/callbacks.ts'
import { artifactsOf } from './artifacts.ts'
import { updatesOf } from './streams.ts'

/** How much of what agents said is read for a message, in bytes. A question with more is sent without its details. */
const mostSaid = 262_144

interface PushMessageParts { configs: PushConfigs, tasks: Tasks, callbacks: Pick<Callbacks, 'sealOf'> }

/** Makes what the push configs of tasks are sent: a StreamResponse for each artifact, and for the state. */
export class PushMessages implements PushSource {
  readonly #parts: PushMessageParts

  constructor (parts: PushMessageParts) {
    this.#parts = parts
  }

  /** Those of a note that are to be sent, in their order; none where a later change was sent, or the config is gone. */
  async of (tag: string, tenant: string, note: Callback): Promise<PushMessage[]> {
    const { configs, callbacks } = this.#parts
    const [, number, task, , context, ...words] = note.text.split(' ') as [string, string, string, string, string]
    const place = { tag, tenant, id: task }
    const kept = await configs.read(place)
    const known = kept?.find(one => one.number === Number(number))
    if (kept !== null && known === undefined) return []
    // The task may have gone, and its configs with it: then the one counts that was noted.
    const config = configs.open(place, known?.config ?? JSON.parse(note.target) as PushConfig)
    const change = readChange(words.join(' '), id => callbacks.sealOf(tenant, id, note))
    const seen = change.what === 'done' ? null : await this.#read(place)
    const seal = callbacks.sealOf(tenant, change.handoff, note)
    const result = note.result && seal.open('result', note.result)
    const updates = updatesOf({ task, context }, change, artifactsOf(result), seen, note.isOmitted)
    // A first attempt is made whatever was sent: others of the task may be under way beside it. Nothing follows the
    // end, so what was sent of that is its own.
    const sent = note.attempts === 0 && change.what !== 'done' ? 0 : known?.sent ?? 0
    return updates.filter(({ sequence }) => sequence > sent).map(({ sequence, text }) => ({
      id: `${note.id}_${sequence}`,
      url: config.url,
      headers: pushHeaders(config),
      body: text,
      noteSent: async () => { if (known !== undefined) await configs.noteSent(place, known.number, sequence) }
    }))
  }

  async #read (place: { tag: string, tenant: string, id: string }): Promise<TaskSeen | null> {
    try {
      return await this.#parts.tasks.read(place, { texts: 'most' }, mostSaid)
    } catch (error) {
      if (error instanceof TooLarge) return null
      throw error
    }
  }
}

function pushHeaders ({ token, authentication }: PushConfig): Record<string, string> {
  return {
    'content-type': 'application/a2a+json',
    ...token !== undefined && { 'x-a2a-notification-token': token },
    ...authentication !== undefined && {
      authorization: [authentication.scheme, authentication.credentials].filter(Boolean).join(' ')
    }
  }
}
