import { html } from 'ghtml'
import { layout, notice } from './layout.ts'

/** @param base BASE_URL's path @param next where to go then, without it @param problem in plain words */
export function signInPage (base: string, next: string, problem?: string): string {
  return layout({ base, title: 'Sign in', main: signInForm(base, next, problem) })
}

export function signInForm (base: string, next: string, problem?: string): string {
  return html`<h1>Sign in</h1>
!${problem === undefined ? '' : notice('bad', html`<p id="problem">${problem}</p>`)}
<form class="sign-in" method="post" action="${base}/approvals/sign-in">
<input type="hidden" name="next" value="${next}">
<label for="key">Approver key</label>
<input id="key" name="key" type="password" required autofocus autocomplete="off" autocapitalize="off" spellcheck="false"!${problem === undefined ? '' : ' aria-describedby="problem"'}>
<button class="good">Sign in</button>
</form>
<p class="quiet">Whoever runs this service hands out the keys. You stay signed in for 8 hours at the most.</p>`
}

/**
 * For who comes from another site: a browser sends no strict cookie on such a way, so nobody knows yet who it is. The page asks
 * for the same address again, now from here.
 */
export function againPage (url: string): string {
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Approvals</title><meta http-equiv="refresh" content="0; url=${url}"></head>
<body><main><h1>Approvals</h1><p><a href="${url}">Go on to the page</a></p></main></body></html>`
}
