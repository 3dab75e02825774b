import { html } from 'ghtml'
import { about } from '../../http/openapi.ts'
import { approvalsArea, consoleArea } from '../area.ts'
import { layout, notice } from './layout.ts'

/** A form that was sent without a session: its address, the typed values, and the name of the key's field. */
interface KeptForm { action: string, fields: Readonly<Record<string, unknown>>, keyField: string }

/**
 * @param next the path to go to afterwards
 * @param problem in plain words
 * @param kept a form that is sent again together with the key, and shown then
 */
export function signInPage (baseUrl: () => string, next: string, problem?: string, kept?: KeptForm): string {
  const area = isConsole(next) ? consoleArea : approvalsArea
  const main = signInForm(baseUrl().replace(/^https?:\/\//, ''), next, problem, kept)
  return layout({ area, title: 'Sign in', main })
}

/** @param host whose service it is: a person should know where a key goes before typing it */
function signInForm (host: string, next: string, problem?: string, kept?: KeptForm): string {
  const { action, fields, keyField } = kept ?? { action: '/approvals/sign-in', fields: {}, keyField: 'key' }
  const hidden = Object.entries({ ...fields, next }).flatMap(([name, value]) => [value].flat().map(one =>
    html`<input type="hidden" name="${name}" value="${String(one)}">`))
  return html`<h1>Sign in</h1>
<p>To the ${about.title} at <strong class="host">${host}</strong>, where people !${isConsole(next)
  ? 'see what agents pass on, and step in'
  : 'approve or reject what agents pass on'}.</p>
!${problem === undefined ? '' : notice('bad', html`<p id="problem">${problem}</p>`)}
<form class="sign-in" method="post" action="${action}">
!${hidden}
<label for="key">${isConsole(next) ? 'Operator or approver key' : 'Approver key'}</label>
<input id="key" name="${keyField}" type="password" required autofocus autocomplete="off" autocapitalize="off" spellcheck="false"!${problem === undefined
  ? ''
  : ' aria-describedby="problem"'}>
<button class="good">Sign in</button>
</form>
<p class="quiet">The operator of this service hands out the keys. You stay signed in for at most 8 hours.</p>`
}

/** Does the path lead to the console? */
function isConsole (path: string): boolean {
  return path === consoleArea.home || /^\/console[/?]/.test(path)
}

/**
 * For a link from another site: browsers don't send a SameSite=Strict cookie with it, so the person isn't known yet.
 * This page requests the same URL again, now from this site, with the cookie.
 */
export function againPage (url: string): string {
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${about.title}</title><meta http-equiv="refresh" content="0; url=${url}"></head>
<body><main><h1>${about.title}</h1><p><a href="${url}">Continue</a></p></main></body></html>`
}
