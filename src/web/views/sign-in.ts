import { html } from 'ghtml'
import { about } from '../../http/openapi.ts'
import { approvalsArea, consoleArea } from '../area.ts'
import { duration } from '../text.ts'
import { layout, notice } from './layout.ts'

/** A form that was sent without a session: its address, the typed values, and the name of the key's field. */
export interface KeptForm { action: string, fields: Readonly<Record<string, unknown>>, keyField: string }

/** How people sign in. @property issuers by which they may @property sessionLength in seconds */
interface Ways {
  baseUrl: string
  issuers: ReadonlyArray<{ issuer: string, label: string }>
  takesKeys: boolean
  sessionLength: number
}

/**
 * @param next the path to go to afterwards
 * @param problem in plain words
 * @param kept a form that is sent again together with the key, and shown then
 */
export function signInPage (ways: Ways, next: string, problem?: string, kept?: KeptForm): string {
  const { baseUrl, issuers, takesKeys, sessionLength } = ways
  const area = isConsole(next) ? consoleArea : approvalsArea
  const host = baseUrl.replace(/^https?:\/\//, '')
  const buttons = issuers.map(({ issuer, label }) => html`
<p><a class="onward" role="button" href="${startUrl(issuer, next)}"!${kept === undefined ? '' : ' target="_blank" rel="noopener"'}>${label}</a></p>`)
  const isSentByHand = issuers.length > 0 && kept !== undefined
  const main = html`<h1>Sign in</h1>
<p>To the ${about.title} at <strong class="host">${host}</strong>, where people !${isConsole(next)
  ? 'see what agents pass on, and step in'
  : 'approve or reject what agents pass on'}.</p>
!${problem === undefined ? '' : notice('bad', html`<p id="problem">${problem}</p>`)}!${buttons}
!${takesKeys || isSentByHand ? signInForm(next, { takesKeys, isSentByHand }, problem, kept) : ''}
<p class="quiet">!${takesKeys ? 'The operator of this service hands out the keys. ' : ''}You stay signed in for at most ${duration(sessionLength * 1000)}.</p>`
  return layout({ area, title: 'Sign in', main })
}

/** @param isSentByHand whether the form is also sent by who signed in by an issuer, in another window */
function signInForm (
  next: string, { takesKeys, isSentByHand }: { takesKeys: boolean, isSentByHand: boolean }, problem?: string,
  kept?: KeptForm
): string {
  const { action, fields, keyField } = kept ?? { action: '/approvals/sign-in', fields: {}, keyField: 'key' }
  const hidden = Object.entries({ ...fields, next, ...!takesKeys && { [keyField]: '' } }).flatMap(([name, value]) =>
    [value].flat().map(one => html`<input type="hidden" name="${name}" value="${String(one)}">`))
  const described = problem === undefined ? '' : ' aria-describedby="problem"'
  return html`<form class="sign-in" method="post" action="${action}">
!${hidden}
!${isSentByHand
  ? `<p>This opens another window. What you typed stays here.</p>
<p><button formnovalidate>I am signed in: go on</button></p>`
  : ''}!${takesKeys
  ? html`<label for="key">${isConsole(next) ? 'Operator or approver key' : 'Approver key'}</label>
<input id="key" name="${keyField}" type="password" required autofocus autocomplete="off" autocapitalize="off" spellcheck="false"!${described}>
<button class="good">Sign in</button>`
  : ''}
</form>`
}

/** Where the way to an issuer begins. @param asAnother the issuer must ask who it is */
function startUrl (issuer: string, next: string, asAnother = false): string {
  const query = new URLSearchParams({ issuer, next, ...asAnother && { another: '1' } })
  return `/sign-in/start?${query.toString()}`
}

/** The issuer let no person in, or this service didn't. @param text in plain words @param asAnother by which issuer */
export function notSignedInPage (
  title: string, text: string, next: string, asAnother?: string
): string {
  const area = isConsole(next) ? consoleArea : approvalsArea
  const other = asAnother === undefined
    ? ''
    : html`<p><a class="onward" role="button" href="${startUrl(asAnother, next, true)}">Sign in as another person</a></p>`
  return layout({
    area,
    title,
    main: html`<h1>${title}</h1>!${notice('bad', html`<p>${text}</p>`)}!${other}
<p><a class="onward" href="/approvals/sign-in?next=${encodeURIComponent(next)}">To the sign-in</a></p>`,
  })
}

/** Does the path lead to the console? */
function isConsole (path: string): boolean {
  return path === consoleArea.home || /^\/console[/?]/.test(path)
}

/**
 * For a link from another site: browsers don't send a SameSite=Strict cookie with it, so the person isn't known yet.
 * This page requests the same URL again, now from this site, with the cookie. It also leads to an issuer, where a form
 * must not.
 */
export function againPage (url: string): string {
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${about.title}</title><meta http-equiv="refresh" content="0; url=${url}"></head>
<body><main><h1>${about.title}</h1><p><a href="${url}">Continue</a></p></main></body></html>`
}
