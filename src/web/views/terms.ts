import { html } from 'ghtml'
import type { ToRead } from '../../handoff/approvals.ts'
import { digestText } from '../../handoff/answers.ts'
import { duration, moment } from '../words.ts'

/** How much of a digest is visible at first, in characters: as many as two people can compare by eye. */
const digestShown = 12

/** A name, and HTML. */
type Row = [name: string, value: string]

/** The handoff's terms (windows, attempts, lineage) and the digest of its content, as a list; null for a plain handoff. @param base BASE_URL's path */
export function terms (base: string, one: ToRead): string | null {
  const rows = [...addressee(one), ...windows(one), ...attempts(base, one), ...lineage(base, one)]
  if (rows.length === 0 && one.schema === null) return null
  rows.push(['Digest', digest(digestText(one.digest))])
  return html`<dl class="terms">!${rows.map(([name, value]) => html`<div><dt>${name}</dt> <dd>!${value}</dd></div>`)}</dl>`
}

function addressee ({ record: { extra: { to, priority = 0 } } }: ToRead): Row[] {
  return to === undefined ? [] : [['For the inbox', html`${to}${priority === 0 ? '' : `, priority ${priority}`}`]]
}

function windows ({ record: { extra } }: ToRead): Row[] {
  const rows: Row[] = []
  if (extra.availableAt !== undefined) rows.push(['Can’t be caught before', moment(extra.availableAt)])
  if (extra.workWithin !== undefined) rows.push(['Must be done within', `${duration(extra.workWithin)} of the catch`])
  if (extra.heartbeatWithin !== undefined) rows.push(['Heartbeat at least every', `${duration(extra.heartbeatWithin)}, while an agent works on it`])
  return rows
}

function attempts (base: string, { record: { extra } }: ToRead): Row[] {
  const { attempt, maxAttempts, reissueOf, reissuedAs } = extra
  const rows: Row[] = []
  if (maxAttempts !== undefined) rows.push(['Attempts', maxAttempts === 1 ? 'one' : `up to ${maxAttempts}`])
  if (attempt !== undefined && reissueOf !== undefined) rows.push(['This attempt', html`number ${attempt}, after !${link(base, reissueOf)}`])
  if (reissuedAs !== undefined) rows.push(['Next attempt', link(base, reissuedAs)])
  return rows
}

function lineage (base: string, { record: { extra: { parent } }, isParentShown }: ToRead): Row[] {
  return parent === undefined ? [] : [['Part of', isParentShown ? link(base, parent) : html`<code>${parent}</code>`]]
}

/** To another handoff's page. */
function link (base: string, id: string): string {
  return html`<a href="${base}/approvals/${id}"><code>${id}</code></a>`
}

function digest (whole: string): string {
  return html`<details><summary><code>${whole.slice(0, whole.indexOf(':') + 1 + digestShown)}…</code> <small>of task, output, context and constraints</small></summary><code>${whole}</code></details>`
}
