import { html } from 'ghtml'
import { askAt } from '../../core/model.ts'
import type { Ask, Caller } from '../../core/model.ts'
import type { ToRead } from '../../handoffs/approvals.ts'
import type { Found } from '../../handoffs/asks.ts'
import { formOf } from '../answer-schema.ts'
import { dateTag, expiresIn, labelTags, waitingFor } from '../text.ts'
import { answerForm } from './answer-form.ts'
import type { AnswerDraft } from './answer-form.ts'
import { contents, jsonPart, nameOf, onward, part, quote, taskOf, textView, verdictLine } from './handoff.ts'
import { layout, notice } from './layout.ts'

/** What a person is asked in the middle of the work, and how it stands. */
export interface QuestionPage {
  caller: Caller
  one: ToRead
  found: Found
  draft?: AnswerDraft | undefined
  /** The answer was for another question, or for one that is gone. */
  isAnother?: boolean
}

const skipToAnswer = '<a class="skip" href="#answer">Skip to the answer</a>\n'
const another = '<p>This is another question than the one that you answered. Nothing was sent: read this one, and ' +
  'answer it.</p>'

export function questionPage ({ caller, one, found, draft, isAnother = false }: QuestionPage): string {
  const { record, now, texts } = found
  const ask = record.extra.ask!
  const why = whyNot(caller, found)
  const address = `/approvals/${one.id}`
  const isOpen = why === null
  return layout({
    title: 'A question',
    caller,
    main: html`!${isOpen ? skipToAnswer : ''}!${isAnother ? notice('bad', another) : ''}!${isOpen
      ? ''
      : notice(ask.state === 'answered' ? 'good' : 'bad', why) + onward}<h1>Question from ${record.caught!.by}</h1>
!${factsOf(one, ask, now, isOpen)}
!${part('Question', textView(null, JSON.parse(texts.question.toString()) as string))}
!${texts.details === null ? '' : part('Details', jsonPart(null, texts.details.toString()))}
!${isOpen ? answerForm(address, ask.id, formOf(texts.schema), draft) : ''}
<h2>What it is about: the handoff from ${record.passedBy}</h2>
!${one.record.approval === 'none'
  ? taskOf(one)
  : (one.decision === null ? '' : verdictLine(caller, one.record.approval, one.decision)) + contents(address, one)}`,
  })
}

function factsOf ({ id, record }: ToRead, ask: Ask, now: number, isOpen: boolean): string {
  const { to, labels } = record.extra
  const facts = [
    isOpen ? waitingFor(ask.askedAt, now) : html`asked !${dateTag(ask.askedAt)}`,
    isOpen ? expiresIn(ask.expiresAt, now) : '',
    to === undefined ? '' : html`inbox ${to}`,
    html`<code>${id}</code>`,
    labels === undefined ? '' : labelTags(labels)
  ]
  return html`<p class="facts">!${facts.filter(fact => fact !== '').map(fact => html`<span>!${fact}</span> `)}</p>`
}

/** Why this person can't answer, in the service's order; null if they can. */
function whyNot (caller: Caller, { record, now, texts }: Found): string | null {
  const ask = record.extra.ask!
  const asker = record.caught!.by
  const state = askAt(ask, record, now)
  if (state === 'answered') {
    const note = JSON.parse(texts.note ?? 'null') as string | null
    return html`<p><strong>${nameOf(ask.answeredBy!, caller)} answered this</strong> !${dateTag(ask.endedAt!)}. An answer is final.</p>
!${texts.answer === null ? '' : html`<p>Answer:</p>!${jsonPart(null, texts.answer.toString())}`}!${note === null ? '' : quote('Note', note)}`
  }
  if (state === 'expired') {
    return html`<p>Nobody answered this by !${dateTag(ask.expiresAt)}, and now nobody can. ${asker} has to go on without an answer.</p>`
  }
  if (state === 'withdrawn') {
    const when = ask.endedAt === null ? '' : html` !${dateTag(ask.endedAt)}`
    return html`<p>This was withdrawn!${when}: the work ended before anybody answered.</p>`
  }
  return asker === caller.agent ? '<p>You ask this yourself. Somebody else has to answer.</p>' : null
}
