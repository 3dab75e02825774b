import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import helmet from '@fastify/helmet'
import files from '@fastify/static'
import type { FastifyInstance } from 'fastify'
import type { DecisionService } from '../handoffs/people/decisions.ts'
import type { PeopleService } from '../handoffs/people/people.ts'
import { belowBase } from '../http/base-url.ts'
import type { ClientFile } from '../http/clients.ts'
import { fixed, keepFilesInMemory, kept, oncePer, sendFixed } from '../http/fixed-answers.ts'
import type { ApiEndpoint } from '../http/openapi.ts'
import { decisionRoutes, handoffRoutes } from './approvals.ts'
import { listRoutes } from './approvals-list.ts'
import { approvalsArea } from './area.ts'
import { clientsPage } from './clients.ts'
import { decidedRoutes } from './decided.ts'
import { letPeopleIn, securityHeaders, servePeople } from './people.ts'
import type { People } from './people.ts'
import { manyRoutes } from './decide-many.ts'
import { questionRoutes } from './questions.ts'
import type { Questions } from './questions.ts'
import { signInRoutes } from './session.ts'
import { frontView } from './views/layout.ts'
import { problemsView } from './views/problem.ts'

interface Pages extends People, Questions { forPeople: PeopleService, decisions: DecisionService }

// The compiler copies no assets. They stay in src/web/assets, which is ../../src/web/assets from src/web and from
// dist/web.
const assets = fileURLToPath(new URL('../../src/web/assets/', import.meta.url))
const htmx = dirname(createRequire(import.meta.url).resolve('htmx.org/dist/htmx.min.js'))
const served = new Set(['/page.css', '/page.js', '/htmx.min.js'])

/** The pages on which people decide: everything below /approvals, and the files of all pages. */
export async function approvalPages (app: FastifyInstance, pages: Pages): Promise<void> {
  const signIn = await servePeople(app, approvalsArea, pages)
  keepFilesInMemory(app)
  await app.register(files, {
    root: [assets, htmx],
    prefix: '/assets/',
    decorateReply: false,
    schemaHide: true,
    index: false,
    allowedPath: path => served.has(path),
    setHeaders: reply => { reply.setHeader('cache-control', 'no-cache') },
  })
  signInRoutes(app, signIn, pages)
  await app.register(async own => {
    letPeopleIn(own, approvalsArea, pages, signIn)
    listRoutes(own, pages, pages.forPeople)
    decidedRoutes(own, pages)
    handoffRoutes(own, pages, pages.forPeople)
    decisionRoutes(own, pages)
    manyRoutes(own, pages)
    questionRoutes(own, pages)
  })
}

/** The pages that need no key, and don't change while the service runs. */
export async function openPages (app: FastifyInstance, front: Front): Promise<void> {
  const { baseUrl } = front
  await app.register(page => frontPage(page, front))
  await app.register(page => clientsPage(page, front), { prefix: '/clients' })
  await app.register(page => problemsPage(page, baseUrl().startsWith('https:')))
}

interface Front {
  endpoints: readonly ApiEndpoint[]
  baseUrl: () => string
  /** The clients that this service hands out. */
  clients: readonly ClientFile[]
}

/** `GET /`: introduces the service to newcomers. It doesn't call Redis, so an outage doesn't affect it. */
async function frontPage (app: FastifyInstance, { endpoints, baseUrl, clients }: Front): Promise<void> {
  await app.register(helmet, securityHeaders(baseUrl().startsWith('https:')))
  const page = oncePer(baseUrl, url => fixed(belowBase(app, frontView(endpoints, url, clients))))
  app.get('/', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) =>
    sendFixed(request, reply, page(), 'text/html; charset=utf-8', kept))
}

/**
 * The page that each problem's `type` links to.
 * @param isSecure the pages are served over https
 */
async function problemsPage (app: FastifyInstance, isSecure: boolean): Promise<void> {
  await app.register(helmet, securityHeaders(isSecure))
  const page = fixed(belowBase(app, problemsView()))
  app.get('/problems', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) =>
    sendFixed(request, reply, page, 'text/html; charset=utf-8'))
}
