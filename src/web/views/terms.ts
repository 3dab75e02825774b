import { html } from 'ghtml'
import { cutFiles } from '../../core/files.ts'
import { isBlocked } from '../../core/model.ts'
import { digestText, otherTerms } from '../../handoffs/lifecycle/answers.ts'
import { withoutQuery } from '../../handoffs/lifecycle/callback.ts'
import type { ToRead } from '../../handoffs/people/approvals.ts'
import { dateTag, duration, labelTags } from '../text.ts'

/** How much of a digest is visible at first, in characters: as many as two people can compare by eye. */
const digestShown = 12

/** A name, and HTML. */
type Row = [name: string, value: string]

/**
 * The handoff's terms (labels, windows, attempts, lineage, schedule), and the digest of its content last, as a list;
 * null where there is nothing to say.
 */
export function terms (one: ToRead): string | null {
  const others = otherTerms(one.record).map(([name, value]): Row => [name, html`${value}`])
  const rows = [
    ...addressee(one), ...labels(one), ...windows(one), ...attempts(one), ...lineage(one), ...ofSchedule(one),
    ...callbackRows(one), ...others
  ]
  const hasFiles = one.payload !== null && cutFiles(one.payload, 'files').files !== null
  if (one.digest !== '') rows.push(['Digest', digest(digestText(one.digest), hasFiles)])
  if (rows.length === 0) return null
  return html`<dl class="terms">!${rows.map(([name, value]) =>
    html`<div><dt>${name}</dt> <dd>!${value}</dd></div>`)}</dl>`
}

function addressee ({ record: { extra: { to, priority = 0, group } } }: ToRead): Row[] {
  if (to === undefined) return []
  const inbox: Row = ['For the inbox', html`${to}${priority === 0 ? '' : `, priority ${priority}`}`]
  return group === undefined ? [inbox] : [inbox, ['Group', html`${group}`]]
}

function labels ({ record: { extra } }: ToRead): Row[] {
  return extra.labels === undefined ? [] : [['Labels', labelTags(extra.labels)]]
}

function windows ({ record }: ToRead): Row[] {
  const { extra } = record
  const rows: Row[] = []
  if (isBlocked(record)) rows.push(['Waits for', otherHandoffs(extra.after!.open)])
  if (extra.availableAt !== undefined) rows.push(['Can’t be caught before', dateTag(extra.availableAt)])
  if (extra.workWithin !== undefined) rows.push(['Must be done within', `${duration(extra.workWithin)} of the catch`])
  if (extra.heartbeatWithin !== undefined) {
    rows.push(['Heartbeat at least every', `${duration(extra.heartbeatWithin)}, while an agent works on it`])
  }
  return rows
}

/** How many others it comes after that haven't ended. */
export function otherHandoffs (open: number): string {
  return `${open} other ${open === 1 ? 'handoff' : 'handoffs'}`
}

function attempts ({ record: { extra } }: ToRead): Row[] {
  const { attempt, maxAttempts, reissueOf, reissuedAs } = extra
  const rows: Row[] = []
  if (maxAttempts !== undefined) rows.push(['Attempts', maxAttempts === 1 ? 'one' : `up to ${maxAttempts}`])
  if (attempt !== undefined && reissueOf !== undefined) {
    rows.push(['This attempt', html`number ${attempt}, after !${link(reissueOf)}`])
  }
  if (reissuedAs !== undefined) rows.push(['Next attempt', link(reissuedAs)])
  return rows
}

function lineage ({ record: { extra: { parent } }, isParentShown }: ToRead): Row[] {
  return parent === undefined ? [] : [['Part of', isParentShown ? link(parent) : html`<code>${parent}</code>`]]
}

function ofSchedule ({ record: { extra: { schedule, scheduledFor } } }: ToRead): Row[] {
  return schedule === undefined ? [] : [['Run of the schedule', html`${schedule}, for !${dateTag(scheduledFor!)}`]]
}

/** Whom it tells what becomes of it, and whether the result goes there too. */
function callbackRows ({ callback, record: { extra } }: ToRead): Row[] {
  if (callback === null) return []
  const what = extra.callback?.withResult === true ? 'what becomes of it, with its result' : 'what becomes of it'
  return [['Callback', html`${what}, to <code>${withoutQuery(callback.url)}</code>`]]
}

/** To another handoff's page. */
function link (id: string): string {
  return html`<a href="/approvals/${id}"><code>${id}</code></a>`
}

function digest (whole: string, hasFiles: boolean): string {
  const of = hasFiles ? 'task, output, context, constraints and files' : 'task, output, context and constraints'
  return html`<details><summary><code>${whole.slice(
    0, whole.indexOf(':') + 1 + digestShown
  )}…</code> <small>of ${of}</small></summary><code>${whole}</code></details>`
}
