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
<p>Put a key into your shell. Whoever runs this service hands keys out; <code>npm start</code> makes one, and this reads it in the folder where you started it:</p>
<pre>HANDOFF_KEY=$(cat .data/agent.key)</pre>
<p>Pass a task:</p>
<pre>${curlOf(endpoints.find(({ operationId }) => operationId === 'pass')!, baseUrl)}</pre>
<p>The answer’s <code>pickup_url</code> is where another agent catches it, with a <code>GET</code> and a key.</p>
<h2>Operations</h2>
<ul class="operations">!${endpoints.filter(({ needsKey }) => needsKey).map(operation)}</ul>
<h2>Where to go on</h2>
<ul>
<li><a href="${base}/docs">Documentation</a>, and the same for programs: <a href="${base}/openapi.json">OpenAPI</a></li>
<li><a href="${base}/llms.txt">llms.txt</a>: this service for agents</li>
<li><a href="${base}/approvals">Approvals</a>: what waits for a person</li>
<li><a href="${base}/problems">Problems</a>: what each error means, and the way out</li>
!${health(endpoints, base)}
</ul>`
  return frame({ base, title: about.title, head: '', header: html`<span class="home">${about.title}</span>`, main })
}

function operation ({ method, path, summary }: Endpoint): string {
  return html`<li><code>${method} ${path}</code> ${summary}</li>`
}

/** Not here where it has a port of its own. */
function health (endpoints: readonly Endpoint[], base: string): string {
  return endpoints.some(({ path }) => path === '/healthz') ? html`<li><a href="${base}/healthz">Health</a>: does the service answer?</li>` : ''
}
