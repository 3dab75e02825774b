import { newKeyId, newSecret } from '../../src/store/api-keys.ts'
import type { LightMyRequestResponse } from 'fastify'
import type { TestApp, Who } from './app.ts'
import { form } from './forms.ts'
import { secrets } from './app.ts'

/** Handoffs for each operation, and an expired one for the sweep. */
export type Prepared = Record<'toCatch' | 'toDo' | 'toHear' | 'toFail' | 'toDecline' | 'toReissue' | 'toCancel' | 'toAwait' | 'toApprove' | 'toReject', string>

export async function prepared ({ call, pass }: TestApp): Promise<Prepared> {
  const [toCatch, toDo, toHear, toFail, toDecline, toReissue, toCancel, toAwait, toApprove, toReject] = await Promise.all([
    pass(), pass(), pass({ heartbeat_within: 60 }), pass({ max_attempts: 2 }), pass(), pass(), pass(), pass(),
    pass({ require_human: true, to: 'work' }), pass({ require_human: true, to: 'work' }), pass({ require_human: true, expires_in: 1 }),
  ])
  for (const id of [toDo, toHear, toFail, toDecline, toReissue]) await call('bob', 'GET', `/api/catch/${id}`)
  return { toCatch, toDo, toHear, toFail, toDecline, toReissue, toCancel, toAwait, toApprove, toReject }
}

export interface Done { path: string, /** The one that goes well. */ status: number, answer: LightMyRequestResponse }

/** Calls every operation of the service, all at once. */
export async function allOperations ({ app, call }: TestApp, ids: Prepared): Promise<Done[]> {
  const { toCatch, toDo, toHear, toFail, toDecline, toReissue, toCancel, toAwait, toApprove, toReject } = ids
  const asked: Array<[status: number, who: Who, method: 'GET' | 'POST', path: string, body?: object]> = [
    [201, 'alice', 'POST', '/api/pass', { task: 't' }],
    [201, 'alice', 'POST', '/api/pass', { task: 't', require_human: true }],
    [201, 'alice', 'POST', '/api/pass', { task: 't', to: 'bob' }],
    [200, 'bob', 'GET', `/api/catch/${toCatch}`],
    [200, 'bob', 'POST', '/api/catch'],
    [200, 'alice', 'GET', '/api/inboxes/bob'],
    [200, 'alice', 'POST', '/api/batch', { operations: [{ op: 'pass', body: { task: 't' } }] }],
    [200, 'bob', 'POST', `/api/done/${toDo}`, { output: { a: 1 } }],
    [200, 'bob', 'POST', `/api/heartbeat/${toHear}`, { progress: { percent: 1 } }],
    [200, 'bob', 'POST', `/api/fail/${toFail}`, { error: { message: 'm' } }],
    [200, 'bob', 'POST', `/api/decline/${toDecline}`, { reason: 'r' }],
    [201, 'alice', 'POST', `/api/reissue/${toReissue}`],
    [200, 'alice', 'POST', `/api/cancel/${toCancel}`],
    [200, 'alice', 'GET', `/api/status/${toCatch}`],
    [200, 'alice', 'GET', `/api/status/${toAwait}?wait=1&until=caught`],
    [200, 'approver', 'GET', '/api/approvals'],
    [200, 'approver', 'GET', `/api/approvals/${toReject}`],
    [200, 'approver', 'POST', `/api/approve/${toApprove}`],
    [200, 'approver', 'POST', `/api/reject/${toReject}`, { note: 'n' }],
  ]
  const page = async (): Promise<Done[]> => {
    const signIn = await app.inject(form('/approvals/sign-in', { key: secrets.approver }))
    const cookie = signIn.cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
    const list = await app.inject({ url: '/approvals', headers: { cookie } })
    const signOut = await app.inject(form('/approvals/sign-out', {}, { 'sec-fetch-site': 'same-origin', cookie }))
    return [
      { path: '/approvals/sign-in', status: 303, answer: signIn },
      { path: '/approvals', status: cookie === '' ? 303 : 200, answer: list },
      { path: '/approvals/sign-out', status: 303, answer: signOut },
    ]
  }
  /** With a well-formed key, which has to be looked up in Redis. */
  const stranger = async (): Promise<Done> => {
    const headers = { authorization: `Bearer ${newSecret(newKeyId())}` }
    return { path: '/api/approvals', status: 401, answer: await app.inject({ url: '/api/approvals', headers }) }
  }
  const [api, pages, strange] = await Promise.all([
    Promise.all(asked.map(async ([status, who, method, path, body]) => ({ path, status, answer: await call(who, method, path, body) }))), page(), stranger(),
  ])
  return [...api, ...pages, strange]
}
