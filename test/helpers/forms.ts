import { setImmediate } from 'node:timers/promises'
import type { InjectOptions } from 'fastify'
import { secrets } from './app.ts'
import type { TestApp } from './app.ts'

/** The headers that a browser sends with a form of our own page. */
export const own = { 'sec-fetch-site': 'same-origin' }

/** A form as a browser sends it. */
export function form (url: string, fields: Record<string, string>, headers: Record<string, string> = own): InjectOptions {
  return { method: 'POST', url, payload: new URLSearchParams(fields).toString(), headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers } }
}

/** Signs in as carol. @returns the session's cookie */
export async function signedIn ({ app }: TestApp): Promise<string> {
  const { cookies: [cookie] } = await app.inject(form('/approvals/sign-in', { key: secrets.approver }))
  return `${cookie!.name}=${cookie!.value}`
}

/** Passes a handoff that waits for a person. @returns its id */
export async function asked ({ pass }: TestApp, task = 'x'): Promise<string> {
  const id = await pass({ task, require_human: true })
  // Those of one millisecond have no order, so the next is passed in a later one.
  for (const now = Date.now(); Date.now() === now;) await setImmediate()
  return id
}

/** The hidden fields of the form on the handoff's page. */
export async function shown ({ app }: TestApp, id: string, cookie: string): Promise<{ created_at: string, digest: string }> {
  const { body } = await app.inject({ url: `/approvals/${id}`, headers: { cookie } })
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(body)![1]!.replaceAll('&#61;', '=').replaceAll('&#x2F;', '/').replaceAll('&#43;', '+')
  return { created_at: field('created_at'), digest: field('digest') }
}

/** A person who has signed in with this key. @returns asks for a page, or sends a form */
export async function personWith ({ app }: Pick<TestApp, 'app'>, key: string) {
  const { cookies: [cookie] } = await app.inject(form('/approvals/sign-in', { key }))
  const session = { ...own, cookie: `${cookie!.name}=${cookie!.value}` }
  return (url: string, fields?: Record<string, string>, more: Record<string, string> = {}) => {
    const headers = { ...session, ...more }
    return app.inject(fields === undefined ? { url, headers } : form(url, fields, headers))
  }
}

/** What our pages write as references, as the characters that these mean. */
export function unescaped (text: string): string {
  return text.replaceAll('&amp;', '&').replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))
}

/** The text of a page's content, on one line. */
export function textOf (page: string): string {
  return unescaped(page.replace(/^.*<main[^>]*>/s, '').replace(/<[^>]*>/g, ' ')).replace(/\s+/g, ' ')
}
