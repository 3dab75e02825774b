import { html } from 'ghtml'
import { partsOf } from '../../clients/typescript/command/common/names.ts'
import type { Caller } from '../../core/model.ts'
import { reasonRules } from '../../core/schemas/attempts.ts'
import type { Graph } from '../../handoffs/lists/graph.ts'
import type { RunCounts } from '../../store/runs.ts'
import type { Handoffs } from '../console-routes.ts'
import { agoTag, dateTag } from '../text.ts'
import { endFacts } from './console-failed.ts'
import { address, ago, agentLink, counted, handoffRow, statusTag } from './console-handoffs.ts'
import { consoleLayout, inboxLink, liveSection, mayChange, number, runPath, table, tiles } from './console-layout.ts'
import { graphPicture } from './graph.ts'
import { notice } from './layout.ts'

/** Which runs there are. */

interface RunItem {
  value: string, live: number, done: number, failed: number, other: number, first_at: string, last_at: string
}

interface RunsPage {
  caller: Caller
  /** The names of labels that make runs. */
  labels: readonly string[]
  label: string
  items: readonly RunItem[]
  next: string | null
  cursor: string | undefined
}

export function runsPage ({ caller, labels, label, items, next, cursor }: RunsPage): string {
  const tabs = labels.length === 1
    ? ''
    : html`<nav class="tabs" aria-label="Labels">!${labels.map(one =>
      html`<a href="${address('/console/runs', { label: one })}"!${one === label ? ' aria-current="page"' : ''}>${one}</a> `)}</nav>`
  const rows = items.map(({ value, live, done, failed, other, first_at: first, last_at: last }) => {
    const run = `${label}:${value}`
    return [
      html`<a id="run-${value}" href="${runPath(run)}">${value}</a>`,
      number(live),
      number(done),
      failed === 0 ? '0' : html`<a href="${address('/console/failed', { labels: run })}">${number(failed)}</a>`,
      number(other),
      dateTag(Date.parse(first)),
      dateTag(Date.parse(last)),
    ]
  })
  const links = [
    ...cursor === undefined ? [] : [html`<a href="${address('/console/runs', { label })}">Back to the latest</a>`],
    ...next === null ? [] : [html`<a id="runs-next" href="${address('/console/runs', { label, cursor: next })}">Earlier runs</a>`]
  ]
  const inside = html`!${rows.length === 0
    ? html`<p>!${noneFound(label, next, cursor)}</p>`
    : table({ label: 'Runs', columns: [label, 'Live', 'Done', 'Failed', 'Other', 'First', 'Last'], rows })}
!${links.length === 0 ? '' : html`<p>!${links.join(' ')}</p>`}`
  return consoleLayout({
    caller,
    title: 'Runs',
    at: '/console/runs',
    main: html`<h1>Runs</h1>!${tabs}
<p class="quiet">Works, not attempts. The run that something was passed to last is first.</p>
!${liveSection('runs', address('/console/runs', { label, cursor }), inside)}`
  })
}

function noneFound (label: string, next: string | null, cursor: string | undefined): string {
  if (next !== null) return 'None found so far. There may be earlier ones.'
  return cursor === undefined
    ? html`There is none yet: a run is what is passed with the same value of the label <code>${label}</code>.`
    : 'There are no earlier ones.'
}

/** One of them. */

interface RunPage {
  caller: Caller
  label: string
  /** Null if it isn't counted any more. */
  counts: Omit<RunCounts, 'value'> | null
  graph: Graph
  titles: ReadonlyMap<string, string>
  /** By Redis's clock. */
  now: number
  failed: Handoffs
  live: Handoffs
  listsEnded: boolean
  /** What a form on this page has just done. */
  done: { cancelled: number | undefined, requested: number | undefined, more: boolean }
}

export function runPage (page: RunPage): string {
  const { caller, label, done } = page
  const [name, value] = partsOf(label)
  const stop = mayChange(caller) ? html`<div class="steering"><a class="onward bad" id="stop" href="${stopPath(label)}">Stop this run…</a></div>` : ''
  return consoleLayout({
    caller,
    title: `${name} ${value}`,
    at: '/console/runs',
    main: html`!${stoppedNotice(label, done)}<h1><small>${name}</small> ${value}</h1>
!${stop}
!${liveSection('run', runPath(label), contents(page))}`
  })
}

function stopPath (label: string): string {
  return runPath(label).replace('/run?', '/run/stop?')
}

function contents ({ label, counts, graph, titles, now, failed, live, listsEnded }: RunPage): string {
  const sum = counts === null ? 0 : counts.live + counts.done + counts.failed + counts.other
  const left = graph.isWhole
    ? ''
    : sum > graph.nodes.length
      ? ` ${number(graph.nodes.length)} of ${number(sum)} are drawn: what failed and what is live come first.`
      : ' There are more, which aren’t drawn.'
  return html`!${counts === null
? ''
: tiles([
    ['Live', number(counts.live)],
    ['Done', number(counts.done)],
    ['Failed', number(counts.failed)],
    ['Other', html`${number(counts.other)} <small>cancelled, rejected, expired</small>`],
    ['First passed', agoTag(counts.firstAt, now)],
    ['Last passed', agoTag(counts.lastAt, now)],
  ])}
<section aria-labelledby="drawn"><h2 id="drawn">What comes after what</h2>
!${graph.nodes.length === 0 ? '<p class="quiet">Nothing of it is left to be drawn.</p>' : graphPicture({ graph, titles, label: 'drawn' })}
<p class="quiet">What is on the left comes first, or is what the others are a part of.${left}!${listsEnded ? '' : ' What has ended isn’t drawn: this service doesn’t list it.'}</p></section>
!${listPart('failed', 'What failed', failed, address('/console/failed', { labels: label }), endFacts)}
!${listPart('live', 'Pending or caught', live, address('/console/find', { q: label }), liveFacts)}
!${listsEnded ? html`<p><a id="to-ended" href="${address('/console/ended', { labels: label })}">All that has ended of it</a></p>` : ''}
<p class="quiet">As of !${dateTag(now)}, and kept up to date.</p>`
}

function listPart (
  id: string, title: string, { items, next, now }: Handoffs, all: string, facts: typeof endFacts
): string {
  const shown = items.length === 0
    ? html`<p class="quiet">${next === null ? 'None.' : 'None found so far.'}</p>`
    : html`<ol class="handoffs">!${items.map(item => handoffRow(item, facts(item, now)))}</ol>`
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>
!${shown}!${next === null ? '' : html`<p><a id="all-${id}" href="${all}">All of these</a></p>`}</section>`
}

function liveFacts (...[item, now]: Parameters<typeof endFacts>): string[] {
  const { status, to, caught_by: catcher, caught_at: since, created_at: at, worker } = item
  return [
    statusTag(status),
    to === undefined ? '' : `in ${inboxLink(to)}`,
    html`passed !${ago(at, now)}`,
    catcher === undefined ? '' : html`caught by !${agentLink(catcher)}, !${ago(since!, now)}`,
    worker === undefined ? '' : html`worker <code>${worker}</code>`,
  ]
}

function stoppedNotice (label: string, { cancelled, requested = 0, more }: RunPage['done']): string {
  if (cancelled === undefined) return ''
  const asked = requested === 0
    ? ''
    : ` ${requested === 1 ? 'One catcher was' : `${number(requested)} catchers were`} asked to stop.`
  return notice('good', html`<p>${cancelled === 1 ? 'One handoff was' : `${number(cancelled)} handoffs were`} cancelled.${asked}!${more
    ? html` There are more: <a href="${stopPath(label)}">go on</a>.`
    : ''}</p>`)
}

/** What stopping a run would change; `areMore` than that many. */
interface StopCount { count: number, areMore: boolean }
export interface Stopping { pending: StopCount, all: StopCount }

/** What was refused, and what was typed. */
interface StopDraft { problem: string, reason: string, caught: string }

/** Asks before a run is stopped. */
export function stopPage (caller: Caller, label: string, { pending, all }: Stopping, draft?: StopDraft): string {
  const [name, value] = partsOf(label)
  const words = ({ count, areMore }: StopCount) => `${areMore ? 'more than ' : ''}${counted(count, 'handoff')}`
  const caught = all.count - pending.count
  const isMany = all.areMore
  const choice = (value: string, what: string, about: string) =>
    html`<label class="choice"><input type="radio" name="caught" value="${value}"!${value === (draft?.caught ?? 'ask') ? ' checked' : ''}> <span>${what} <span class="quiet">${about}</span></span></label>`
  return consoleLayout({
    caller,
    title: `Stop ${name} ${value}?`,
    at: '/console/runs',
    main: html`<h1>Stop ${name} ${value}?</h1>
!${draft === undefined ? '' : notice('bad', html`<p id="problem">${draft.problem}</p>`)}
<p>Now <strong>${words(pending)}</strong> of it ${pending.count === 1 && !pending.areMore ? 'is' : 'are'} pending!${isMany ? '' : html`, and <strong>${words({ count: caught, areMore: false })}</strong> ${caught === 1 ? 'is' : 'are'} caught`}. Cancelled, nobody does them any more. That can’t be taken back.</p>
<p>What is passed to it meanwhile is cancelled too; what is passed later isn’t. At most 1,000 are changed at a time.</p>
<form class="question" method="post" action="${stopPath(label)}">
<fieldset class="choices"><legend>What becomes of what is caught?</legend>
!${choice('ask', 'Its catchers are asked to stop.', 'They may still finish.')}
!${choice('force', 'It is taken from them.', 'What they say later doesn’t count.')}
!${choice('', 'It goes on.', 'Only what is pending is cancelled.')}</fieldset>
<label for="reason">Reason <span class="quiet">(may be left out; agents see it)</span></label>
<textarea id="reason" name="reason" rows="2" dir="auto" maxlength="${String(2 * reasonRules.maxLength)}"!${draft === undefined ? '' : ' aria-describedby="problem"'}>
${draft?.reason ?? ''}</textarea>
<div class="buttons"><button class="bad">Stop the run</button> <a class="onward" href="${runPath(label)}">Back</a></div></form>`
  })
}
