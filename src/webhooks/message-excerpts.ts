import { PayloadBroken, PayloadLocked } from '../core/errors.ts'
import { tagOf } from '../core/ids.ts'
import type { Asks } from '../store/asks.ts'
import type { HandoffPlace, Handoffs } from '../store/handoffs.ts'
import { excerpt } from '../handoffs/lists/excerpt.ts'

/** How much of a task or a question a message for a person has, in characters. */
const maxShown = 200

/** The beginning of an agent's text. */
interface Excerpt { name: 'Task' | 'Question', text: string, isCut: boolean }

/** The events that are about a question. */
const ofQuestions = new Set(['handoff.asked', 'handoff.answered', 'handoff.ask_ended'])

/** Reads the beginnings of tasks and questions, for messages to people that are to have them. */
export class MessageExcerpts {
  readonly #handoffs: Pick<Handoffs, 'beginning' | 'status'>
  readonly #asks: Pick<Asks, 'asked'>

  constructor (handoffs: Pick<Handoffs, 'beginning' | 'status'>, asks: Pick<Asks, 'asked'>) {
    this.#handoffs = handoffs
    this.#asks = asks
  }

  /**
   * The excerpt for a message about this handoff; null if the text is gone.
   * @param type the event's @param askId the question of the event
   */
  async read (tenant: string, id: string, type: string, askId: string | undefined): Promise<Excerpt | null> {
    const place = { tag: tagOf(id), tenant, id }
    const isQuestion = ofQuestions.has(type)
    const json = await (isQuestion ? this.#question(place, askId) : this.#handoffs.beginning(place))
    if (json === null) return null
    const { text, truncated } = excerpt(json, maxShown)
    return { name: isQuestion ? 'Question' : 'Task', text: JSON.parse(text) as string, isCut: truncated }
  }

  /** Whose key decided; null if that isn’t known any more. */
  async decidedBy (tenant: string, id: string): Promise<string | null> {
    const reply = await this.#handoffs.status({ tag: tagOf(id), tenant, id }, 0, 0)
    return reply.outcome === 'found' ? reply.decision?.by ?? null : null
  }

  /** A message may be late, or be sent again: then the latest question is another. */
  async #question (place: HandoffPlace, askId: string | undefined): Promise<Buffer | null> {
    const reply = await this.#asks.asked(place, 0).catch((error: unknown) => {
      if (error instanceof PayloadLocked || error instanceof PayloadBroken) return null
      throw error
    })
    if (reply === null) return null
    return reply.outcome === 'found' && reply.record.extra.ask?.id === askId ? reply.texts?.question ?? null : null
  }
}
