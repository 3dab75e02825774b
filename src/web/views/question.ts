import { html } from 'ghtml'
import { askAt } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import type { ToRead } from '../../handoffs/people/approvals.ts'
import type { Found } from '../../handoffs/people/asks.ts'
import { formOf } from '../answer-schema.ts'
import { dateTag, expiresIn, labelTags, waitingFor } from '../text.ts'
import { answerForm } from './answer-form.ts'
import type { AnswerDraft } from './answer-form.ts'
import { Writing, beyondObject, contents, markdownSwitch, part, titleFrom } from './content.ts'
import type { ShownAs } from './content.ts'
import { factsLine, headingOf, nameOf, onward, quote, verdictLine, yoursDidNotCount } from './handoff.ts'
import { layout, notice } from './layout.ts'
import { watchPart } from './standing.ts'

/** A question to people in the middle of the work, and how it stands. */
export interface QuestionPage {
  caller: Caller
  one: ToRead
  found: Found
  draft?: AnswerDraft | undefined
  /** The answer was for another question, perhaps a former one. */
  isAnother?: boolean
  /** This person has just answered, and too late. */
  isLate?: boolean
  as?: ShownAs
}

const skipToAnswer = '<a class="skip" href="#answer">Skip to the answer</a>\n'
const another = '<p>This is another question than the one that you answered. Nothing was sent: read this one, and ' +
  'answer it.</p>'

export function questionPage (
  { caller, one, found, draft, isAnother = false, isLate = false, as = 'text' }: QuestionPage
): string {
  const { record, now, texts } = found
  const ask = record.extra.ask!
  const why = whyNot(caller, one.id, found)
  const isOpen = why === null
  const { to, labels } = one.record.extra
  const facts = [
    isOpen ? waitingFor(ask.askedAt, now) : html`asked !${dateTag(ask.askedAt)}`,
    isOpen ? expiresIn(ask.expiresAt, now) : '',
    to === undefined ? '' : html`inbox ${to}`,
    labels === undefined ? '' : labelTags(labels)
  ]
  const form = isOpen ? answerForm(`/approvals/${one.id}`, ask.id, formOf(texts.schema), draft) : ''
  const title = titleFrom(JSON.parse(texts.question.toString()) as string)
  return layout({
    title,
    caller,
    main: html`!${isOpen ? skipToAnswer : ''}!${isAnother ? notice('bad', another) : ''}!${isOpen
      ? ''
      : notice(ask.state === 'answered' && !isLate ? 'good' : 'bad', (isLate ? yoursDidNotCount : '') + why) + onward}!${headingOf(title, html`Question from ${record.caught!.by}`)}
!${factsLine(facts)}
!${isOpen ? watchPart(one.id, { askId: ask.id }) : ''}
!${questionView(one.id, found, as)}
!${form}
!${handoffView(caller, one, as)}`,
  })
}

function wholeOf (id: string): string {
  return `/approvals/${id}/question`
}

/** What is asked. */
export function questionView (id: string, { record, texts }: Found, as: ShownAs): string {
  const writing = new Writing(record.caught!.by, as)
  const question = JSON.parse(texts.question.toString()) as string
  return html`<div class="content">!${markdownSwitch(id, as, 'question')}!${beyondObject(texts.details, wholeOf(id), ' before you answer')}!${part('Question', writing.text(question), '', id)}
!${texts.details === null ? '' : part('Details', writing.json(texts.details.toString()), '', id)}</div>`
}

/** What that is about. */
export function handoffView (caller: Caller, one: ToRead, as: ShownAs): string {
  const { record, decision } = one
  return html`<h2>What it is about: the handoff from ${record.passedBy}</h2>
!${decision === null ? '' : verdictLine(caller, record.approval, decision)}!${contents(one, as)}`
}

/** Why this person can't answer, in the service's order; null if they can. */
function whyNot (caller: Caller, id: string, { record, now, texts }: Found): string | null {
  const ask = record.extra.ask!
  const asker = record.caught!.by
  const state = askAt(ask, record, now)
  if (state === 'answered') {
    const note = JSON.parse(texts.note ?? 'null') as string | null
    return html`<p><strong>${nameOf(ask.answeredBy!, caller)} answered this</strong> !${dateTag(ask.endedAt!)}. An answer is final.</p>
!${texts.answer === null ? '' : html`!${beyondObject(texts.answer, wholeOf(id))}<p>Answer:</p>!${new Writing(ask.answeredBy!).json(texts.answer.toString())}`}!${note === null ? '' : quote('Note', note)}`
  }
  if (state === 'expired') {
    return html`<p>Nobody answered this by !${dateTag(ask.expiresAt)}, and now nobody can. ${asker} has to go on without an answer.</p>`
  }
  if (state === 'withdrawn') {
    const when = ask.endedAt === null ? '' : html` !${dateTag(ask.endedAt)}`
    return html`<p>This was withdrawn!${when}: the work ended before anybody answered.</p>`
  }
  return asker === caller.agent ? '<p>You ask this yourself. Another person has to answer.</p>' : null
}
