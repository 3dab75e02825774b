import { maxTimer } from '../clock.ts'
import { isHandoffError } from '../index.ts'
import type { AskWanted, HandoffClient, JsonObject, Question } from '../index.ts'
import { memberText } from '../json.ts'
import type { Labels } from './common/names.ts'
import { Failure } from './output.ts'
import { ask as call, lines, listLines, oldest, wantedLabels } from './ask.ts'
import type { AskOptions } from './ask.ts'

/** `handoff ask`, `asked`, `asks` and `answer`: questions in the middle of the work. */

export interface QuestionOptions extends AskOptions, AskWanted {
  question: string
  wait?: number
  idempotencyKey?: string
}

const plain = ({ text }: { readonly text: string }) => lines(text)

/** Asks, and with `wait` prints the answer. @returns the exit status: with `wait` 1 where there is no answer */
export async function ask (options: QuestionOptions, id: string): Promise<number> {
  const { question, wait, of, details, schema, expiresIn, idempotencyKey } = options
  const wanted = { of, details, schema, expiresIn, idempotencyKey }
  if (wait === undefined) return await call(options, client => client.ask(id, question, wanted), plain)
  let isAnswered = false
  const status = await call(options, async client => {
    const { ask_id: askId } = await client.ask(id, question, wanted)
    const found = await untilEnded(client, id, wait)
    isAnswered = found.ask_id === askId && found.state === 'answered'
    return found
  }, found => {
    if (!isAnswered) throw new Failure(`no answer: the question is ${found.state}`)
    return answerLines(found)
  })
  return isAnswered ? status : 1
}

/** @returns the exit status */
export async function asked (options: AskOptions & { wait?: number }, id: string): Promise<number> {
  return await call(options, async client => {
    // At once: an address or an id that is wrong shows now, and not after the wait.
    const now = await client.asked(id)
    return now.state === 'open' && options.wait ? await untilEnded(client, id, options.wait) : now
  }, plain)
}

/** For as long as the wait is, it also goes on while the service is away. */
async function untilEnded (client: HandoffClient, id: string, wait: number): Promise<Question> {
  const retryFor = wait * 1000
  const own = new AbortController()
  const timer = retryFor > maxTimer ? undefined : setTimeout(() => own.abort(), retryFor)
  try {
    return await client.asked(id, { wait, retryFor, signal: own.signal })
  } catch (error) {
    if (!isHandoffError(error, 'aborted')) throw error
    return await client.asked(id)
  } finally {
    clearTimeout(timer)
  }
}

/** The answer's members, and what else the answerer said. */
function answerLines ({ text, answer, note }: Question): string {
  const members = Object.keys(answer!).length === 0 ? '{}' : lines(memberText(text, 'answer')!)
  return note === null ? members : `${members}\n\n${lines(`{"note":${memberText(text, 'note')}}`)}`
}

interface ListOptions extends AskOptions { of?: 'person' | 'passer', inbox?: string, label?: Labels }

/** @returns the exit status */
export async function asks ({ of, inbox, label, ...options }: ListOptions): Promise<number> {
  const wanted = { of, inbox, ...wantedLabels(label) }
  return await call(
    options, client => oldest(page => client.asks({ ...wanted, ...page })),
    ({ text }) => listLines(text, 'nothing is asked')
  )
}

export interface AnswerOptions extends AskOptions { ask?: string, answer: JsonObject, note?: string }

/** @returns the exit status */
export async function answer ({ ask, answer, note, ...options }: AnswerOptions, id: string): Promise<number> {
  return await call(options, async client => {
    // If it isn't open, the service says so.
    const askId = ask ?? (await client.asked(id)).ask_id
    return await client.answer(id, askId, answer, { note })
  }, plain)
}
