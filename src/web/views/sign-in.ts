import { html } from 'ghtml'
import { about } from '../../http/openapi.ts'
import { layout, notice } from './layout.ts'

/** Where these pages are. */
export interface Site {
  /** BASE_URL's path: every link on a page begins with it. */
  base: string
  baseUrl: () => string
}

/** @param next the path to go to afterwards, without BASE_URL's @param problem in plain words */
export function signInPage ({ base, baseUrl }: Site, next: string, problem?: string): string {
  return layout({ base, title: 'Sign in', main: signInForm(base, baseUrl().replace(/^https?:\/\//, ''), next, problem) })
}

/** @param host whose service it is: nobody should type a key without knowing where it goes */
function signInForm (base: string, host: string, next: string, problem?: string): string {
  return html`<h1>Sign in</h1>
<p>To the ${about.title} at <strong class="host">${host}</strong>, where people approve or reject what agents pass on.</p>
!${problem === undefined ? '' : notice('bad', html`<p id="problem">${problem}</p>`)}
<form class="sign-in" method="post" action="${base}/approvals/sign-in">
<input type="hidden" name="next" value="${next}">
<label for="key">Approver key</label>
<input id="key" name="key" type="password" required autofocus autocomplete="off" autocapitalize="off" spellcheck="false"!${problem === undefined ? '' : ' aria-describedby="problem"'}>
<button class="good">Sign in</button>
</form>
<p class="quiet">The operator of this service hands out the keys. You stay signed in for at most 8 hours.</p>`
}

/**
 * For a link from another site: browsers don't send a SameSite=Strict cookie with it, so the person isn't known yet. This page
 * requests the same URL again, now from this site, with the cookie.
 */
export function againPage (url: string): string {
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Approvals</title><meta http-equiv="refresh" content="0; url=${url}"></head>
<body><main><h1>Approvals</h1><p><a href="${url}">Continue</a></p></main></body></html>`
}
