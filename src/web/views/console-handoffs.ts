import { html } from 'ghtml'
import type { HandoffItem } from '../console-routes.ts'
import { agoTag, beginningView, labelTags, span, timeTag, visible } from '../text.ts'
import { number } from './console-layout.ts'

/** Parts of the console's pages of handoffs. */

/** How much of a task, or another text of an agent's, a list shows, in characters. */
const shown = 200

/** How long ago. @param at ISO 8601 */
export function ago (at: string, now: number): string {
  return agoTag(Date.parse(at), now)
}

/** In how long, rounded to the nearest. @param at ISO 8601 */
export function inTime (at: string, now: number): string {
  const time = Date.parse(at)
  return timeTag(time, time > now ? `in ${span(Math.max(1000, time - now), Math.round)}` : 'now')
}

/** To a handoff's page. @param title what it is about, for those who may know */
export function handoffLink (id: string, title?: string): string {
  if (title === undefined) return html`<a href="/console/handoffs/${id}"><code>${id}</code></a>`
  return html`<a class="titled" title="${id}" href="/console/handoffs/${id}" dir="auto">!${visible(title)}</a>`
}

/** The first line of a task. It is cut where it was kept. */
export function titleOf (title: string): string {
  return html`<span class="task" dir="auto">!${visible(title)}${[...title].length >= longestKept ? '…' : ''}</span>`
}

/** How many characters of a title are kept. */
const longestKept = 100

/** What a handoff is called: its title, what its task begins with, or its id. */
function nameOfItem ({ handoff_id: id, title, task, task_truncated: isCut }: HandoffItem): string {
  if (title !== undefined && title !== '') return titleOf(title)
  if (task === undefined) return html`<code>${id}</code>`
  return html`<span class="task" dir="auto">!${visible(task)}${isCut === true ? '…' : ''}</span>`
}

/** A link to the handoffs that an agent holds. */
export function agentLink (name: string): string {
  return html`<a href="/console/agents?agent=${name}">${name}</a>`
}

/** Its status as a word. Failures stand out. */
export function statusTag (status: string): string {
  return html`<span class="status ${troubled.has(status) ? 'bad' : status === 'done' ? 'good' : ''}">${status}</span>`
}

const troubled = new Set(['failed', 'declined', 'expired', 'rejected'])

/** Text that an agent wrote, on one line or two. */
export function said (text: string, most = shown): string {
  return html`<q dir="auto">!${beginningView(text, most)}</q>`
}

/** A list of facts: pieces of HTML; empty ones are left out. */
function facts (all: readonly string[]): string {
  return html`<span class="facts">!${all.filter(fact => fact !== '').map(fact => html`<span>!${fact}</span> `)}</span>`
}

export function labelFacts (labels: Record<string, string> | undefined): string {
  return labels === undefined ? '' : labelTags(Object.entries(labels).map(([name, value]) => `${name}:${value}`))
}

/** The last report of its catcher. @param most how many characters of it */
export function progressText ({ message, percent }: { message?: string, percent?: number }, most = shown): string {
  const share = percent === undefined ? '' : html`${String(percent)} %`
  return [share, message === undefined ? '' : said(message, most)].filter(part => part !== '').join(' ')
}

/** `one handoff`, `3 handoffs`. */
export function counted (count: number, what: string): string {
  return count === 1 ? `one ${what}` : `${number(count)} ${what}s`
}

export function capital (text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** An address of the console with a query; undefined and empty values are left out. */
export function address (path: string, asked: Record<string, string | undefined>): string {
  const words = Object.entries(asked).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [`${name}=${encodeURIComponent(value)}`])
  return words.length === 0 ? path : `${path}?${words.join('&')}`
}

/** A handoff of a list: its task or id, and facts. @param choice HTML before it */
export function handoffRow (item: HandoffItem, more: readonly string[], choice = ''): string {
  const { handoff_id: id } = item
  return html`<li>!${choice}<div class="row"><a id="h-${id}" href="/console/handoffs/${id}">!${nameOfItem(item)}</a>
!${facts([...more, labelFacts(item.labels)])}</div></li>`
}
