import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { Activity, Minute } from '../../handoffs/lists/activity.ts'
import type { Event } from '../../handoffs/feed/feed.ts'
import { clockTag } from '../text.ts'
import { consoleLayout, liveSection, inboxLink, number } from './console-layout.ts'
import { counted, handoffLink } from './console-handoffs.ts'

/** What happens, and what the handoffs are about, by id, for those who may know. */
export interface ShownActivity extends Activity { titles: ReadonlyMap<string, string> }

/** The tenant's activity, as a page of its own. @param activity null where events are off */
export function activityPage (caller: Caller, activity: ShownActivity | null): string {
  return consoleLayout({
    caller,
    title: 'What happens',
    at: '/console/activity',
    main: html`<h1>What happens</h1>!${activity === null
      ? '<p>Events are off, so this isn’t known. The operator of this service turns them on with ' +
        '<code>EVENTS_RETENTION</code>.</p>'
      : activityPart(activity)}`,
  })
}

/** The last hour as a picture, and the newest events: a part that keeps itself up to date. */
export function activityPart (activity: ShownActivity): string {
  return liveSection('activity', '/console/activity', html`<section aria-labelledby="hour"><h2 id="hour">The last hour</h2>!${picture(activity)}</section>
<section aria-labelledby="newest"><h2 id="newest">What happens</h2>!${newest(activity)}</section>`)
}

/** What the picture has: a handoff is passed once, and ends once. Retries are passed as well. */
const kinds = [['passed', 'other'], ['done', 'good'], ['ended otherwise', 'bad']] as const
const endedOtherwise = new Set(['failed', 'declined', 'expired', 'rejected', 'cancelled'])

function nameOf (type: string): string {
  return type.replace(/^handoff\./, '')
}

/** How many of a minute are of each kind. */
function split ({ counts }: Minute): [passed: number, good: number, bad: number] {
  const found: [number, number, number] = [0, 0, 0]
  for (const [type, count] of counts) {
    const name = nameOf(type)
    const kind = name === 'passed' ? 0 : name === 'done' ? 1 : endedOtherwise.has(name) ? 2 : undefined
    if (kind !== undefined) found[kind] += count
  }
  return found
}

/** Of a minute's place in the picture, and of the picture, in its own units. */
const width = 10
const height = 100

function picture (activity: Activity): string {
  const { minutes, missing, since } = activity
  const parts = minutes.map(split)
  const most = parts.map(part => Math.max(...part))
  const max = Math.max(1, ...most)
  const bars = minutes.map(({ at }, n) => missing.has(at)
    ? html`<rect class="missing" x="${n * width}" y="0" width="${width}" height="${height}"/>`
    : bar(parts[n]!, n, max))
  const [first, last] = [minutes[0]!.at, minutes.at(-1)!.at]
  const middle = minutes[Math.floor(minutes.length / 2)]!.at
  const busiest = most.indexOf(Math.max(...most))
  const sums = kinds.map((_, n) => parts.reduce((sum, part) => sum + part[n]!, 0))
  const isEmpty = minutes.every(({ counts }) => counts.size === 0)
  const peak = (time: string) =>
    isEmpty ? 'Nothing happened.' : html`At most ${number(most[busiest]!)} of a kind in a minute, at !${time}.`
  const legend = sums.map((sum, n) => `${number(sum)} ${kinds[n]![0]}`).join(', ')
  return html`<p class="facts">!${kinds.map(([name, kind], n) =>
  html`<span><span class="key ${kind}"></span> ${number(sums[n]!)} ${name}</span> `)}</p>
<svg class="minutes" role="img" aria-labelledby="minutes-title minutes-text" viewBox="0 0 ${minutes.length * width} ${height}" preserveAspectRatio="none"><title id="minutes-title">What was passed, and what ended, a minute, from ${clock(first)} to ${clock(last)} UTC</title><desc id="minutes-text">${legend}. !${peak(`${clock(minutes[busiest]!.at)} UTC`)}</desc>!${bars}</svg>
<p class="scale" aria-hidden="true"><span>!${clockTag(first, 'minute')}</span><span>!${clockTag(middle, 'minute')}</span><span>!${clockTag(last, 'minute')}</span></p>
<p>!${peak(clockTag(minutes[busiest]!.at, 'minute'))}</p>
!${totals(minutes) === '' ? '' : html`<p class="quiet">All transitions: ${totals(minutes)}.</p>`}
!${missing.size === 0 ? '' : html`<p class="quiet">So much happened that ${counted(missing.size, 'minute')} ${missing.size === 1 ? 'isn’t' : 'aren’t'} counted to the end yet. The grey ones follow while this page is open.</p>`}
!${since <= first ? '' : html`<p class="quiet">Events are kept only since !${clockTag(since, 'minute')}.</p>`}`
}

/** One beside the other: what is passed and done in the same minute isn't twice as much. */
function bar (parts: readonly number[], n: number, max: number): string {
  const wide = (width - 1) / kinds.length
  return parts.map((count, kind) => {
    if (count === 0) return ''
    const part = count / max * height
    return html`<rect class="${kinds[kind]![1]}" x="${(n * width + kind * wide).toFixed(1)}" y="${(height - part).toFixed(2)}" width="${wide.toFixed(1)}" height="${part.toFixed(2)}"/>`
  }).join('')
}

/** All types with their numbers, in words. */
function totals (minutes: readonly Minute[]): string {
  const all = new Map<string, number>()
  for (const { counts } of minutes) for (const [type, count] of counts) all.set(type, (all.get(type) ?? 0) + count)
  return [...all].sort(([, one], [, other]) => other - one)
    .map(([type, count]) => `${count.toLocaleString('en')} ${nameOf(type).replaceAll('_', ' ')}`).join(', ')
}

/** The time of day, in UTC. */
function clock (at: number): string {
  return new Date(at).toISOString().slice(11, 16)
}

/** The events that a handoff's catcher makes. */
const byCatcher = new Set(['caught', 'done', 'failed', 'declined', 'asked'])

interface EventText { time: string, data: { handoff_id?: string, to?: string, passed_by?: string, caught_by?: string } }

function newest ({ newest: events, titles }: ShownActivity): string {
  if (events.length === 0) return '<p class="quiet">Nothing yet.</p>'
  return html`<ol class="history">!${events.map(event => row(event, titles))}</ol>`
}

function row ({ type, text }: Event, titles: ShownActivity['titles']): string {
  const { time, data: { handoff_id: id, to, passed_by: passer, caught_by: catcher } } = JSON.parse(text) as EventText
  const at = clockTag(Date.parse(time), 'second')
  const name = nameOf(type)
  const who = name === 'passed' ? passer : byCatcher.has(name) ? catcher : undefined
  return html`<li>!${at} <strong>${name.replaceAll('_', ' ')}</strong>!${id === undefined ? '' : ` ${handoffLink(id, titles.get(id))}`}!${to === undefined
    ? ''
    : ` in ${inboxLink(to)}`}!${who === undefined ? '' : html` <span class="quiet">${name === 'passed' ? 'from' : 'by'} ${who}</span>`}</li>`
}
