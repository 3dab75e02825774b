import { isDeepStrictEqual } from 'node:util'
import { doneBody, passBody } from './load.ts'
import { catcherKey, passerKey } from './server-process.ts'

/**
 * One handoff from pass to done, checking each answer, so that no contestant with wrong answers is measured.
 * @param once whether the contestant refuses a second catch
 */
export async function exchange (url: string, once = true): Promise<void> {
  const passed = await ask(`${url}/api/pass`, passerKey, 201, passBody)
  const caught = await ask(`${url}/api/catch/${passed.handoff_id}`, catcherKey, 200)
  const { task, output, context, constraints } = caught
  if (!isDeepStrictEqual({ task, output, context, constraints }, JSON.parse(passBody))) throw new Error(`${url}: the caught payload differs from the passed one`)
  if (once) await ask(`${url}/api/catch/${passed.handoff_id}`, catcherKey, 409)
  await ask(`${url}/api/done/${passed.handoff_id}`, catcherKey, 200, doneBody)
}

async function ask (url: string, key: string, expected: number, body?: string): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(url, body === undefined
    ? { headers }
    : { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body })
  const text = await response.text()
  if (response.status !== expected) throw new Error(`${url} answered ${response.status}, not ${expected}: ${text}`)
  return text === '' ? {} : JSON.parse(text) as Record<string, unknown>
}
