import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import { html } from 'ghtml'
import { Problem } from '../core/errors.ts'
import { about } from '../http/openapi.ts'
import { belowBase } from '../http/base-url.ts'
import { addressOf, commandLine, installLine, presentOne, workerLines, workerText } from '../http/clients.ts'
import type { ClientFile } from '../http/clients.ts'
import { fixed, kept, oncePer, sendFixed } from '../http/fixed-answers.ts'
import { securityHeaders } from './people.ts'
import { frame } from './views/layout.ts'

/** `GET /clients/`: the service hands out its own clients, of its own version, so that no registry is needed. */
export async function clientsPage (
  app: FastifyInstance, { baseUrl, clients }: { baseUrl: () => string, clients: readonly ClientFile[] }
): Promise<void> {
  await app.register(helmet, securityHeaders(baseUrl().startsWith('https:')))
  const page = oncePer(baseUrl, url => fixed(belowBase(app, view(url, clients))))
  const served = { exposeHeadRoute: true, schema: { hide: true } }
  app.get('/', served, async (request, reply) =>
    sendFixed(request, reply, page(), 'text/html; charset=utf-8', kept))
  for (const { names, type, content } of clients) {
    for (const name of names) {
      app.get(`/${name}`, served, async (request, reply) => sendFixed(request, reply, content, type, kept))
    }
  }
  // Texts elsewhere may name a version that was here before an update.
  app.get<{ Params: { name: string } }>('/:name', served, async ({ params }) => {
    const present = presentOne(params.name, clients)
    throw new Problem('not_found', present && {
      detail: `This service has no ${JSON.stringify(params.name.slice(0, 80))}. Its client for ${present.of} is ` +
        `${addressOf(baseUrl(), present)}.`
    })
  })
}

function view (baseUrl: string, clients: readonly ClientFile[]): string {
  const parts = clients.map(client => html`<h2>${client.of}</h2>
<pre>${installLine(baseUrl, client)}</pre>
<pre class="program">${client.worker}</pre>
<p>!${client.names.map(name => html`<a href="/clients/${name}">${name}</a>, `)}${Math.ceil(client.content.body.length / 1000)} KB</p>`)
  const main = html`<h1>Clients</h1>
<p>They are of this service’s version, and come from this service: no package registry is needed. They read the address from
<code>HANDOFF_URL</code> and the key from <code>HANDOFF_KEY</code>. Below each is a program that serves an inbox.</p>
!${parts.length === 0 ? '<p>This service was started without being built, so it has none.</p>' : [...parts, inShell(baseUrl)]}`
  return frame({
    title: `Clients · ${about.title}`, head: '', header: html`<a class="home" href="/">${about.title}</a>`, main
  })
}

function inShell (baseUrl: string): string {
  return html`<h2>In a shell</h2>
<p>${workerText} The other verbs are in <code>${commandLine(baseUrl)} --help</code>; <code>login ${baseUrl}</code> keeps a key there.</p>
<pre>${workerLines(baseUrl)}</pre>`
}
