import { html } from 'ghtml'
import { rowFields, initially } from '../answer-form.ts'
import type { Faults, Typed } from '../answer-form.ts'
import type { Choice, Field, Form, Rule } from '../answer-schema.ts'
import { formats, zoned } from '../formats.ts'
import { sentAgain } from '../notes.ts'
import { jsonView } from '../json-view.ts'
import { beginningOf, beginningView, hasHidden, visible } from '../text.ts'
import { notice } from './layout.ts'
import { zoneOf } from './time-fields.ts'

/** How much of a schema's texts the form shows, in characters. */
const shown = { title: 200, hint: 1000, choice: 300, schema: 20_000, openSchema: 1500 }
/** As many values to choose from are shown side by side; more are a list that opens. */
const fewChoices = 6

/** The refused values, and why. */
export interface AnswerDraft {
  typed: Typed
  note: string
  faults: Faults
  noteFault?: string | undefined
  /** Nothing is wrong, but the session had ended. */
  isSentAgain?: boolean
  /** Of the rows that got one more: their field's key. */
  added?: string
}

/** @param address of the handoff's page @param askId of the question that the page shows */
export function answerForm (
  address: string, askId: string, { title, description, fields }: Form, draft?: AnswerDraft
): string {
  const faults: Faults = draft?.faults ?? new Map()
  // The first that is wrong gets the focus.
  const first = [...faults.keys()].find(key => key !== '') ?? (draft?.noteFault === undefined ? '' : 'note')
  const typed = draft?.typed ?? initially(fields)
  const focus = draft?.added === undefined ? first : lastRow(fields.find(({ key }) => key === draft.added)!, typed)
  const whole = faults.get('')
  const drawn = fields.map(field => {
    if (field.kind === 'rows') return rowsView(field, { typed, faults, focus })
    const { key } = field
    return fieldView(field, { value: typed.get(key) ?? '', fault: faults.get(key), hasFocus: focus === key })
  })
  return html`<form id="answer" class="answer" method="post" action="${address}/answer" aria-label="Answer" tabindex="-1">
<button class="unseen" tabindex="-1" aria-hidden="true">Send the answer</button><input type="hidden" name="ask_id" value="${askId}">
!${draft?.isSentAgain === true ? notice('bad', html`<p>${sentAgain} Nothing was sent yet.</p>`) : ''}
!${whole === undefined && first === ''
? ''
: notice('bad', html`<p>Nothing was sent yet.!${whole === undefined
  ? ' See what is marked below.'
  : ''}</p>!${whole === undefined ? '' : html`<p class="lines">!${visible(whole)}</p>`}`)}
!${title === '' ? '' : html`<h2 dir="auto">!${beginningView(title, shown.title)}</h2>`}
!${description === '' ? '' : html`<p class="lines" dir="auto">!${beginningView(description, shown.hint)}</p>`}
!${drawn}
!${noteView(draft, first === 'note')}
<div class="buttons"><button class="good">Send the answer</button></div>
</form>`
}

/** The first cell of the last row. */
function lastRow (field: Field, typed: Typed): string {
  return rowFields(field, Number(typed.get(field.key)) - 1)[0]!.key
}

/** What was typed into rows, and what is wrong with it. @param focus the key of the field that gets it */
interface DrawnRows { typed: Typed, faults: Faults, focus: string }

/** A list of objects. Rows in which nothing is typed are left out; one more comes with the page. */
function rowsView (field: Field, { typed, faults, focus }: DrawnRows): string {
  const { key } = field
  const count = Number(typed.get(key))
  const rows = Array.from({ length: count }, (_, row) => html`<div class="row" role="group" aria-label="Row ${String(row + 1)}">!${rowFields(field, row).map(cell =>
    fieldView(cell, { value: typed.get(cell.key) ?? '', fault: faults.get(cell.key), hasFocus: focus === cell.key, isCell: true }))}</div>`)
  return html`<fieldset class="rows"!${describedBy(field, { fault: faults.get(key) })}><legend>!${titleView(field)}</legend>!${hintView(field)}!${faultView(key, faults.get(key))}
<input type="hidden" name="${key}" value="${String(count)}">!${rows}
<button class="plain" name="add" value="${key}" formnovalidate>Add a row</button> <span class="quiet">Empty rows are left out.</span></fieldset>`
}

/** `isCell`: it is in a row, which may be left empty. */
interface Drawn { isCell?: boolean, value: string, fault: string | undefined, hasFocus: boolean }

function fieldView (field: Field, drawn: Drawn): string {
  const { key, kind, choices } = field
  const isChoice = drawn.isCell !== true && (kind === 'boolean' || (kind === 'choice' && choices.length <= fewChoices))
  const around = html`!${hintView(field)}!${faultView(key, drawn.fault)}`
  if (isChoice) {
    return html`<fieldset!${describedBy(field, drawn)}><legend>!${titleView(field)}</legend>!${around}
!${radios(field, drawn)}</fieldset>`
  }
  return html`<div class="field"><label for="${key}">!${titleView(field)}</label>!${around}
!${input(field, drawn)}</div>`
}

function titleView ({ title, isRequired, isNullable }: Field): string {
  return html`<span dir="auto" class="name">!${beginningView(title, shown.title)}</span>!${isRequired && !isNullable
    ? ' <span class="quiet">(needed)</span>'
    : ''}`
}

function hintView ({ key, kind, hint, rules, initial }: Field): string {
  const words = hint === '' ? [] : [html`<span dir="auto">!${beginningView(hint, shown.hint)}</span>`]
  if (kind === 'json' && hint === '') words.push('Written as JSON.')
  if (!kinds.has(kind) && hasHidden(initial)) {
    words.push(html`What is suggested has characters that you can’t see: <span dir="auto">!${visible(
      beginningOf(initial, shown.hint)
    )}</span>`)
  }
  const text = words.length === 0 ? '' : html`<p class="hint quiet" id="${key}-hint">!${words.join(' ')}</p>`
  return text + rulesView(rules)
}

/** The rules for a value, in the schema's own words. */
function rulesView (rules: readonly Rule[]): string {
  if (rules.length === 0) return ''
  const length = rules.reduce((sum, { json }) => sum + json.length, 0)
  let left = shown.schema
  const all = rules.map(({ name, json }) => {
    const part = json.length > left ? `${beginningOf(json, left)}…` : json
    left = Math.max(0, left - json.length)
    const of = name === null ? '' : html`<p><code dir="auto">!${beginningView(`#/$defs/${name}`, shown.title)}</code></p>`
    return html`!${of}<div class="json">!${jsonView(part)}</div>`
  })
  return html`<details class="rules"!${length <= shown.openSchema ? ' open' : ''}><summary>What it must be, as JSON Schema</summary>!${all}</details>`
}

/** The fields whose value is one of a few, and shown as such. */
const kinds = new Set(['choice', 'boolean', 'number'])

function faultView (key: string, fault: string | undefined): string {
  return fault === undefined ? '' : html`<p class="wrong lines" id="${key}-problem">!${visible(fault)}</p>`
}

function describedBy ({ key, kind, hint, initial }: Field, { fault }: Pick<Drawn, 'fault'>): string {
  const isHinted = hint !== '' || kind === 'json' || (!kinds.has(kind) && hasHidden(initial))
  const ids = [...isHinted ? [`${key}-hint`] : [], ...fault === undefined ? [] : [`${key}-problem`]]
  return ids.length === 0 ? '' : html` aria-describedby="${ids.join(' ')}"`
}

function marks (field: Field, drawn: Drawn): string {
  const { isRequired, isNullable } = field
  const mustBe = isRequired && !isNullable && drawn.isCell !== true
  return (mustBe ? ' required' : '') + (drawn.fault === undefined ? '' : ' aria-invalid="true"') +
    (drawn.hasFocus ? ' autofocus' : '') + describedBy(field, drawn)
}

function input (field: Field, drawn: Drawn): string {
  const { key, kind, choices } = field
  if (kind !== 'line' && Object.hasOwn(formats, kind)) return formatInput(field, drawn)
  if (kind === 'boolean') {
    const yesOrNo = [['', 'No answer'], ['true', 'Yes'], ['false', 'No']].map(([value, text]) =>
      html`<option value="${value}"!${value === drawn.value ? ' selected' : ''}>${text}</option>`)
    return html`<select id="${key}" name="${key}"!${marks(field, drawn)}>!${yesOrNo}</select>`
  }
  if (kind === 'choice') {
    return html`<select id="${key}" name="${key}"!${marks(field, drawn)}>!${choicesView(field, choices, drawn.value)}</select>`
  }
  if (kind === 'line' || kind === 'number') {
    return html`<input id="${key}" name="${key}" dir="auto" value="${drawn.value}" autocomplete="off"!${kind === 'number'
      ? ' inputmode="decimal"'
      : ''}!${marks(field, drawn)}>`
  }
  const isJson = kind === 'json'
  return html`<textarea id="${key}" name="${key}" rows="${isJson ? '6' : drawn.isCell === true ? '1' : '3'}"!${isJson
    ? ' class="code" spellcheck="false" autocapitalize="off" autocomplete="off"'
    : ' dir="auto"'}!${marks(field, drawn)}>
${drawn.value}</textarea>`
}

function formatInput (field: Field, drawn: Drawn): string {
  const { key, kind } = field
  const { input: type, isZoned } = formats[kind as keyof typeof formats]
  const [value, zone] = isZoned ? zoned(drawn.value) : [drawn.value, '']
  const step = isZoned ? ' step="1"' : ''
  const own = html`<input type="${type}"!${step} id="${key}" name="${key}" value="${value}" autocomplete="off"!${marks(field, drawn)}>`
  return isZoned ? own + zoneOf(key, zone) : own
}

function choicesView ({ isRequired }: Field, choices: readonly Choice[], value: string): string {
  const options = choices.map(({ text }, at) =>
    html`<option value="${String(at)}"!${value === String(at) ? ' selected' : ''}>!${choiceText(text)}</option>`)
  return html`<option value="">${isRequired ? 'Choose one' : 'No answer'}</option>!${options}`
}

/** An option has no markup, so invisible characters are written as text. */
function choiceText (text: string): string {
  return beginningView(text, shown.choice).replace(/<[^>]*>/g, '')
}

function radios (field: Field, { value, fault, hasFocus }: Drawn): string {
  const { key, kind, choices, isRequired, isNullable } = field
  const all: Array<[value: string, text: string]> = kind === 'boolean'
    ? [['true', 'Yes'], ['false', 'No']]
    : choices.map(({ text }, at) => [String(at), text])
  if (!isRequired || isNullable) all.push(['', 'No answer'])
  return all.map(([one, text], at) => html`<label class="choice"><input type="radio" name="${key}" value="${one}"!${one === value
    ? ' checked'
    : ''}!${isRequired && !isNullable ? ' required' : ''}!${hasFocus && at === 0 ? ' autofocus' : ''}!${fault === undefined
    ? ''
    : html` aria-describedby="${key}-problem"`}> <span dir="auto">!${choiceText(text)}</span></label>
`).join('')
}

function noteView (draft: AnswerDraft | undefined, hasFocus: boolean): string {
  const fault = draft?.noteFault
  return html`<div class="field"><label for="note">Note <span class="quiet">(if there is more to say)</span></label>!${faultView('note', fault)}
<textarea id="note" name="note" rows="2" dir="auto"!${fault === undefined
  ? ''
  : ' aria-invalid="true" aria-describedby="note-problem"'}!${hasFocus ? ' autofocus' : ''}>
${draft?.note ?? ''}</textarea></div>`
}
