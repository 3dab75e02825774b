import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import { installLine, workerLines, workerText } from '../../http/clients.ts'
import type { ClientFile } from '../../http/clients.ts'
import { mcpHosts } from '../../http/mcp-hosts.ts'
import { about, curlOf } from '../../http/openapi.ts'
import type { ApiEndpoint } from '../../http/openapi.ts'
import { approvalsArea, areasOf } from '../area.ts'
import type { Area } from '../area.ts'
import { visibleText } from '../text.ts'

interface Page {
  /** By default the approvals. */
  area?: Area
  title: string
  /** HTML. */
  main: string
  /** The name of the signed-in person. */
  caller?: Caller | undefined
  /** HTML between the header and the content: the area's own navigation. */
  navigation?: string
  /** Whether its tables need more than a column of text. */
  isWide?: boolean
}

// By default htmx would add its own styles to the page, which the content security policy forbids, and could eval
// strings, which nothing here needs.
const htmxConfig = '{"allowEval":false,"includeIndicatorStyles":false,"selfRequestsOnly":true,"historyEnabled":false}'

/** A whole page of an area. */
export function layout ({ area = approvalsArea, title, main, caller, navigation = '', isWide = false }: Page): string {
  return frame({
    title: `${visibleText(title)} · ${area.name}`,
    head: html`<meta name="htmx-config" content="${htmxConfig}">
<script src="/approvals/assets/htmx.min.js" defer></script>
<script src="/approvals/assets/page.js" defer></script>
`,
    header: (caller === undefined ? html`<span class="home">${area.name}</span>` : signedIn(area, caller)) + navigation,
    main,
    isWide,
  })
}

/** Any page, in the service's style. @param head HTML, as `header` and `main` are */
export function frame (
  { title, head, header, main, isWide = false }:
  Record<'title' | 'head' | 'header' | 'main', string> & Pick<Page, 'isWide'>
): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/approvals/assets/page.css">
!${head}</head>
<body!${isWide ? ' class="wide"' : ''}>
<a class="skip" href="#main">Skip to the content</a>
<header>!${header}</header>
<main id="main" tabindex="-1">
!${main}
</main>
</body>
</html>
`
}

function signedIn (area: Area, caller: Caller): string {
  const who = caller.tenant === 'default' ? caller.agent : `${caller.tenant}/${caller.agent}`
  const links = areasOf(caller).map(one => html`<a class="home" href="${one.home}"!${one === area
    ? ' aria-current="true"'
    : ''}>${one.name}</a> `)
  return html`<nav class="areas" aria-label="Areas">!${links}</nav>
<form method="post" action="/approvals/sign-out"><span class="who">${who}</span> <button class="plain">Sign out</button></form>`
}

/** A message at the top, which screen readers read out. */
export function notice (kind: 'good' | 'bad', inside: string): string {
  return html`<div class="notice ${kind}" role="${kind === 'bad' ? 'alert' : 'status'}">!${inside}</div>`
}

export function frontView (
  endpoints: readonly ApiEndpoint[], baseUrl: string, clients: readonly ClientFile[]
): string {
  const command = (
    wanted: string
  ) => curlOf(endpoints.find(({ operationId }) => operationId === wanted)!, baseUrl).replace('curl ', 'curl -s ')
  const main = html`<h1>Hand work from one agent to another</h1>
<p>${about.description} Where it matters, a person approves first.</p>
<h2>A first call</h2>
<p>Put a key into your shell. The operator of this service hands out keys. <code>npm start</code> makes one; this command reads it, in the folder where you started it:</p>
<pre>HANDOFF_KEY=$(cat .data/agent.key)</pre>
<p>Pass a task, and keep the handoff’s id:</p>
<pre>ID=$(${command('pass')} |
  grep -o '"handoff_id":"[^"]*' | cut -d '"' -f 4)
echo "$ID"</pre>
<p>Another agent catches it, and from then on the work is that agent’s alone. To try it, take the same key:</p>
<pre>${command('catch')}</pre>
<p>It does the work, and reports it done:</p>
<pre>${command('done')}</pre>
<p>The passer of the task reads the result:</p>
<pre>${command('status')}</pre>
!${clients.length === 0 ? '' : inPrograms(baseUrl, clients)}<h2>As tools of an agent</h2>
<p>Agents that use the Model Context Protocol (MCP) find the operations as tools at <code>${baseUrl}/mcp</code>, with the same keys. Paste one of these; all but Claude Desktop and VS Code read the key from <code>HANDOFF_KEY</code>:</p>
!${mcpHosts(baseUrl).map(({ name, file, text }) => html`<details!${file === undefined ? ' open' : ''}><summary>${name}!${file === undefined ? '' : html`, in <code>${file}</code>`}</summary>
<pre>${text}</pre></details>
`)}<h2>Operations</h2>
<p>Each with its members, answers and errors, to be tried, in the <a href="/docs">documentation</a>.</p>
!${operationTables(endpoints)}
<h2>More</h2>
<ul>
<li><a href="/docs">Documentation</a>, and the same for programs: <a href="/openapi.json">OpenAPI</a></li>
<li><a href="/llms.txt">llms.txt</a>: the documentation for agents</li>
<li><a href="/approvals">Approvals</a>: handoffs that wait for a person</li>
<li><a href="/console">Console</a>: all handoffs, and what is wrong, for operators</li>
<li><a href="/problems">Problems</a>: what each error means, and what to do</li>
!${health(endpoints)}
</ul>`
  return frame({ title: about.title, head: '', header: html`<span class="home">${about.title}</span>`, main })
}

function inPrograms (baseUrl: string, clients: readonly ClientFile[]): string {
  return html`<h2>In a program</h2>
<p>The service hands out its own <a href="/clients/">clients</a>, with types; no package registry is needed.
They read <code>HANDOFF_URL</code> and <code>HANDOFF_KEY</code>. A program that serves an inbox:</p>
!${clients.map(client => html`<p>${client.of}:</p>
<pre>${installLine(baseUrl, client)}</pre>
<pre class="program">${client.worker}</pre>
`)}<h2>In a shell</h2>
<p>${workerText}</p>
<pre>${workerLines(baseUrl)}</pre>
`
}

/** A table for each group of operations. Each links to its place in the documentation. */
function operationTables (endpoints: readonly ApiEndpoint[]): string {
  const groups = new Map<string, ApiEndpoint[]>()
  for (const endpoint of endpoints) {
    if (endpoint.needsKey) groups.set(endpoint.tag, [...groups.get(endpoint.tag) ?? [], endpoint])
  }
  return [...groups].map(([tag, some]) => html`<h3 id="of-${tag}">${tag.charAt(0).toUpperCase() + tag.slice(1)}</h3>
<table class="operations" aria-labelledby="of-${tag}"><tbody>!${some.map(({ method, path, summary, operationId }) =>
  html`<tr><th scope="row"><a href="/docs#/${tag}/${operationId}"><code>${method} ${path}</code></a></th><td>${summary}</td></tr>
`)}</tbody></table>`).join('\n')
}

/** Empty with METRICS_PORT: then health is on that port. */
function health (endpoints: readonly ApiEndpoint[]): string {
  return endpoints.some(({ path }) => path === '/healthz')
    ? html`<li><a href="/healthz">Health</a>: does the service answer?</li>`
    : ''
}
