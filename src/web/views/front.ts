import { html } from 'ghtml'
import { curlOf } from '../../http/endpoints.ts'
import type { Endpoint } from '../../http/endpoints.ts'
import { about } from '../../http/openapi.ts'
import { frame } from './layout.ts'

/** @param base BASE_URL's path */
export function frontView (endpoints: readonly Endpoint[], baseUrl: string, base: string): string {
  const main = html`<h1>Hand work from one agent to another</h1>
<p>${about.description} Where it matters, a person approves first.</p>
<h2>A first call</h2>
<p>Put a key into your shell. The operator of this service hands out keys. <code>npm start</code> makes one; this command reads it, in the folder where you started it:</p>
<pre>HANDOFF_KEY=$(cat .data/agent.key)</pre>
<p>Pass a task:</p>
<pre>${curlOf(endpoints.find(({ operationId }) => operationId === 'pass')!, baseUrl)}</pre>
<p>Another agent catches it with a <code>GET</code> of the answer’s <code>pickup_url</code> and a key.</p>
<h2>Operations</h2>
<ul class="operations">!${endpoints.filter(({ needsKey }) => needsKey).map(operation)}</ul>
<h2>More</h2>
<ul>
<li><a href="${base}/docs">Documentation</a>, and the same for programs: <a href="${base}/openapi.json">OpenAPI</a></li>
<li><a href="${base}/llms.txt">llms.txt</a>: the documentation for agents</li>
<li><a href="${base}/approvals">Approvals</a>: handoffs that wait for a person</li>
<li><a href="${base}/problems">Problems</a>: what each error means, and what to do</li>
!${health(endpoints, base)}
</ul>`
  return frame({ base, title: about.title, head: '', header: html`<span class="home">${about.title}</span>`, main })
}

function operation ({ method, path, summary }: Endpoint): string {
  return html`<li><code>${method} ${path}</code> ${summary}</li>`
}

/** Empty with METRICS_PORT: then health is on that port. */
function health (endpoints: readonly Endpoint[], base: string): string {
  return endpoints.some(({ path }) => path === '/healthz') ? html`<li><a href="${base}/healthz">Health</a>: does the service answer?</li>` : ''
}
