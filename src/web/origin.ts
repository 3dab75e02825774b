import type { FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'

/**
 * Refuses a form that another site sent (CSRF): the browser says where it comes from, and a page can't change what it says.
 * Sec-Fetch-Site is sent to https and localhost alone, Origin with every POST.
 * @throws {Problem} cross_origin
 */
export function refuseForeignForms (request: FastifyRequest, baseUrl: string): void {
  if (request.method !== 'POST') return
  const { 'sec-fetch-site': site, origin, host } = request.headers
  if (site !== undefined ? site === 'same-origin' || site === 'none' : isOwn(origin, host, baseUrl)) return
  throw new Problem('cross_origin')
}

/** By its host: a proxy in front may have ended TLS, so the scheme here needn't be that in the browser. */
function isOwn (origin: string | undefined, host: string | undefined, baseUrl: string): boolean {
  if (origin === undefined || !URL.canParse(origin)) return false
  const from = new URL(origin)
  return from.origin === new URL(baseUrl).origin || from.host === host
}
