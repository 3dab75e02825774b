import { html } from 'ghtml'
import type { InboxAnswer } from '../../core/schemas/inboxes.ts'

/** A count as people read it: `12,345`. */
export function number (count: number): string {
  return count.toLocaleString('en')
}

/** The path of an inbox's page. */
export function inboxPath (name: string): string {
  return `/console/inboxes/${name}`
}

/** @param place in the page: with it the link keeps the focus when the page is brought up to date */
export function inboxLink (name: string, place?: string): string {
  return html`<a!${place === undefined ? '' : html` id="${place}-${name}"`} class="name" href="${inboxPath(name)}">${name}</a>`
}

/** In words, for what isn't usual; empty otherwise. */
export function inboxState (inbox: InboxAnswer): string {
  const words = [
    ...inbox.paused ? ['paused'] : [], ...isAtLimit(inbox) ? ['at its limit'] : [], ...isFull(inbox) ? ['full'] : []
  ]
  return words.map(word => html`<span class="badge">${word}</span>`).join(' ')
}

/** Are as many of its handoffs caught as may be? */
export function isAtLimit ({ caught, max_caught: max }: InboxAnswer): boolean {
  return max !== null && caught >= max
}

/** Does it take no more? */
export function isFull (
  { pending, waiting_approval: waiting, delayed, blocked, max_pending: max }: InboxAnswer
): boolean {
  return max !== null && pending + waiting + delayed + blocked >= max
}

/** Numbers with their names, each value as HTML. */
export function tiles (all: ReadonlyArray<readonly [name: string, value: string]>): string {
  return html`<dl class="tiles">!${all.map(([name, value]) => html`<div><dt>${name}</dt><dd>!${value}</dd></div>
`)}</dl>`
}

interface Table {
  /** What it shows, for screen readers. */
  label: string
  columns: readonly string[]
  /** HTML of each cell; the first one of a row names it. */
  rows: ReadonlyArray<readonly string[]>
}

/**
 * A table that is a list of cards where there is no room for columns. Its roles are written out, since browsers forget
 * them where a table is laid out in another way.
 */
export function table ({ label, columns, rows }: Table): string {
  const head = columns.map(name => html`<th role="columnheader" scope="col">${name}</th>`).join('')
  const body = rows.map(([first, ...cells]) => html`<tr role="row"><th role="rowheader" scope="row">!${first!}</th>!${cells.map((cell, at) =>
    html`<td role="cell" data-name="${columns[at + 1]!}"!${cell === '' || cell === '0' ? ' class="none"' : ''}>!${cell}</td>`)}</tr>
`).join('')
  return html`<table role="table" aria-label="${label}"><thead role="rowgroup"><tr role="row">!${head}</tr></thead>
<tbody role="rowgroup">!${body}</tbody></table>`
}
