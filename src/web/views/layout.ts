import { html } from 'ghtml'
import type { Caller } from '../../model.ts'

export interface Page {
  /** BASE_URL's path. */
  base: string
  title: string
  /** HTML. */
  main: string
  /** Who is signed in. */
  caller?: Caller | undefined
}

// By default htmx would add its own styles to the page, which the content security policy forbids, and could eval strings, which nothing here needs.
const htmxConfig = '{"allowEval":false,"includeIndicatorStyles":false,"selfRequestsOnly":true,"historyEnabled":false}'

/** A whole page about approvals. */
export function layout ({ base, title, main, caller }: Page): string {
  return frame({
    base,
    title: `${title} · Approvals`,
    head: html`<meta name="htmx-config" content="${htmxConfig}">
<script src="${base}/approvals/assets/htmx.min.js" defer></script>
<script src="${base}/approvals/assets/page.js" defer></script>
`,
    header: caller === undefined ? '<span class="home">Approvals</span>' : signedIn(base, caller),
    main,
  })
}

/** Any page, in the service's style. @param head HTML, as `header` and `main` are */
export function frame ({ base, title, head, header, main }: Record<'base' | 'title' | 'head' | 'header' | 'main', string>): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${base}/approvals/assets/page.css">
!${head}</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>!${header}</header>
<main id="main" tabindex="-1">
!${main}
</main>
</body>
</html>
`
}

function signedIn (base: string, { tenant, agent }: Caller): string {
  const who = tenant === 'default' ? agent : `${tenant}/${agent}`
  return html`<a class="home" href="${base}/approvals">Approvals</a>
<form method="post" action="${base}/approvals/sign-out"><span class="who">${who}</span> <button class="plain">Sign out</button></form>`
}

/** A message at the top, which screen readers read out. */
export function notice (kind: 'good' | 'bad', inside: string): string {
  return html`<div class="notice ${kind}" role="${kind === 'bad' ? 'alert' : 'status'}">!${inside}</div>`
}
