import type { FastifyInstance } from 'fastify'
import { errorTable, isRetryable } from '../../errors.ts'

/** The page that each problem's `type` links to, made from the table of errors. */
export function problemsRoute (app: FastifyInstance): void {
  const rows = Object.entries(errorTable).map(([code, { status, title, detail }]) =>
    `<section id="${code}"><h2>${status} ${title}</h2><p><code>${code}</code>${isRetryable(status) ? ', retryable' : ''}</p><p>${detail}</p></section>`)
  const page = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Problems</title>' +
    '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">' +
    `<h1>Problems</h1><p>What each error <code>code</code> means, and what to do.</p>${rows.join('')}</html>`
  app.get('/problems', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) => {
    reply.headers({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
    })
    return page
  })
}
