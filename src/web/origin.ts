import type { FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'

/**
 * Refuses a form that another site sent (CSRF). The browser states the origin in these headers, and a page can't change them.
 * Browsers send Sec-Fetch-Site only to https and localhost, but Origin with every POST.
 * @throws {Problem} cross_origin
 */
export function refuseForeignForms (request: FastifyRequest, baseUrl: string): void {
  if (request.method !== 'POST') return
  const { 'sec-fetch-site': site, origin, host } = request.headers
  if (site !== undefined ? site === 'same-origin' || site === 'none' : isOwn(origin, host, baseUrl)) return
  throw new Problem('cross_origin')
}

/** Compares hosts, not schemes: a proxy in front may terminate TLS, so the scheme here may differ from the browser's. */
function isOwn (origin: string | undefined, host: string | undefined, baseUrl: string): boolean {
  if (origin === undefined || !URL.canParse(origin)) return false
  const from = new URL(origin)
  return from.origin === new URL(baseUrl).origin || from.host === host
}
