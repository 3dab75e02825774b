import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { Activity, Minute } from '../../handoffs/lists/activity.ts'
import type { Event } from '../../handoffs/feed/feed.ts'
import { timeTag } from '../text.ts'
import { consoleLayout, liveSection, inboxLink } from './console-layout.ts'
import { capital, counted, handoffLink } from './console-handoffs.ts'

/** The tenant's activity, as a page of its own. @param activity null where events are off */
export function activityPage (caller: Caller, activity: Activity | null): string {
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
export function activityPart (activity: Activity): string {
  return liveSection('activity', '/console/activity', html`<section aria-labelledby="hour"><h2 id="hour">The last hour</h2>!${picture(activity)}</section>
<section aria-labelledby="newest"><h2 id="newest">What happens</h2>!${newest(activity)}</section>`)
}

/** How the picture and its legend group the types: what ended well, what ended otherwise, and all the rest. */
const kinds = [['done', 'good'], ['ended otherwise', 'bad'], ['on the way', 'other']] as const
const endedOtherwise = new Set(['failed', 'declined', 'expired', 'rejected', 'cancelled'])

function nameOf (type: string): string {
  return type.replace(/^handoff\./, '')
}

/** How many of a minute are of each kind. */
function split ({ counts }: Minute): [good: number, bad: number, other: number] {
  const found: [number, number, number] = [0, 0, 0]
  for (const [type, count] of counts) {
    const name = nameOf(type)
    found[name === 'done' ? 0 : endedOtherwise.has(name) ? 1 : 2] += count
  }
  return found
}

/** Of a minute's place in the picture, and of the picture, in its own units. */
const width = 10
const height = 100

function picture (activity: Activity): string {
  const { minutes, missing, since } = activity
  const parts = minutes.map(split)
  const sums = parts.map(([good, bad, other]) => good + bad + other)
  const max = Math.max(1, ...sums)
  const bars = minutes.map(({ at }, n) => missing.has(at)
    ? html`<rect class="missing" x="${n * width}" y="0" width="${width}" height="${height}"/>`
    : bar(parts[n]!, n, max))
  const [first, last] = [minutes[0]!.at, minutes.at(-1)!.at]
  const middle = minutes[Math.floor(minutes.length / 2)]!.at
  const busiest = sums.indexOf(Math.max(...sums))
  const total = sums.reduce((sum, count) => sum + count, 0)
  const words = total === 0
    ? 'Nothing happened.'
    : `${counted(total, 'transition')}${missing.size > 0 ? ' counted so far' : ''}; at most ${sums[busiest]!.toLocaleString('en')} in a minute, at ${clock(minutes[busiest]!.at)}.`
  return html`<p>${capital(words)}</p>
<svg class="minutes" role="img" aria-labelledby="minutes-title minutes-text" viewBox="0 0 ${minutes.length * width} ${height}" preserveAspectRatio="none"><title id="minutes-title">Transitions a minute, from ${clock(first)} to ${clock(last)} UTC</title><desc id="minutes-text">${words} ${totals(minutes)}</desc>!${bars}</svg>
<p class="scale" aria-hidden="true"><span>${clock(first)}</span><span>${clock(middle)}</span><span>${clock(last)} UTC</span></p>
<p class="facts">!${kinds.map(([name, kind], n) =>
  html`<span><span class="key ${kind}"></span> ${parts.reduce((sum, part) => sum + part[n]!, 0).toLocaleString('en')} ${name}</span> `)}</p>
<p class="quiet">${totals(minutes)}</p>
!${missing.size === 0 ? '' : html`<p class="quiet">So much happened that ${counted(missing.size, 'minute')} ${missing.size === 1 ? 'isn’t' : 'aren’t'} counted to the end yet. The grey ones follow while this page is open.</p>`}
!${since <= first ? '' : html`<p class="quiet">Events are kept only since ${clock(since)} UTC.</p>`}`
}

function bar (parts: [number, number, number], n: number, max: number): string {
  let top = height
  return parts.map((count, kind) => {
    if (count === 0) return ''
    const part = count / max * height
    top -= part
    return html`<rect class="${kinds[kind]![1]}" x="${n * width + 1}" y="${top.toFixed(2)}" width="${width - 2}" height="${part.toFixed(2)}"/>`
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

function newest ({ newest: events }: Activity): string {
  if (events.length === 0) return '<p class="quiet">Nothing yet.</p>'
  return html`<ol class="history">!${events.map(row)}</ol>`
}

function row ({ type, text }: Event): string {
  const { time, data: { handoff_id: id, to, passed_by: passer, caught_by: catcher } } = JSON.parse(text) as EventText
  const at = timeTag(Date.parse(time), time.slice(11, 19))
  const name = nameOf(type)
  const who = name === 'passed' ? passer : byCatcher.has(name) ? catcher : undefined
  return html`<li>!${at} <strong>${name.replaceAll('_', ' ')}</strong>!${id === undefined ? '' : ` ${handoffLink(id)}`}!${to === undefined
    ? ''
    : ` in ${inboxLink(to)}`}!${who === undefined ? '' : html` <span class="quiet">${name === 'passed' ? 'from' : 'by'} ${who}</span>`}</li>`
}
