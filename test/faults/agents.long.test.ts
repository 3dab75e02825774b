import type { IncomingMessage, ServerResponse } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { testApp } from '../helpers/app.ts'
import { until } from '../helpers/until.ts'
import { listen } from '../helpers/wire.ts'
import { audit, loadSettings, runAgents } from './agents.ts'
import type { Counts } from './agents.ts'
import { checkHistory, describe, usual } from './checker.ts'
import type { Violation } from './checker.ts'
import { History, clock } from './history.ts'
import type { Operation } from './history.ts'
import { sweepRound } from './index-checks.ts'
import { dumpRedis } from './redis-state.ts'

/** Intercepts a request. @returns true if it has answered itself */
type Meddler = (request: IncomingMessage, response: ServerResponse) => boolean | undefined

interface Round { counts: Counts, history: History, violations: Violation[] }

/** Puts load on a service until so many handoffs have begun, audits them and checks the history. @param shares of handoffs that expire, and of those with attempts */
async function round (t: Test, handoffs: number, { brief = 0, tried = 0, inboxed = 0 }, meddle?: Meddler, sweeps = true): Promise<Round> {
  const { app, store, redis, prefix } = await testApp(t, loadSettings, { workTtl: 86_400_000, retention: 600_000 })
  if (sweeps) store.sweeper.start()
  const urls = [`http://127.0.0.1:${await listen(app)}`]
  const [serve] = app.server.listeners('request') as [(request: IncomingMessage, response: ServerResponse) => void]
  app.server.removeAllListeners('request').on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (meddle?.(request, response) !== true) serve(request, response)
  })
  const history = new History()
  let begun = 0
  const counts = await runAgents({ urls, agents: 16, seed: 7, history, patience: 5000, brief, tried, inboxed, until: () => ++begun > handoffs })
  await audit(urls, history)
  // The sweep may not have reached recently expired handoffs yet.
  const settled = async () => (await dumpRedis([redis], prefix)).due.every(({ score }) => score > clock())
  await until(settled, sweepRound + 500).catch(() => {})
  return { counts, history, violations: checkHistory(history, usual, await dumpRedis([redis], prefix)) }
}

/** Changes the answers whose body matches. */
function spoil (response: ServerResponse, change: (body: string) => string): void {
  const end = response.end.bind(response)
  response.end = ((chunk?: unknown, ...rest: []) => end(chunk === undefined ? chunk : Buffer.from(change(String(chunk))), ...rest)) as typeof response.end
}

function answer (response: ServerResponse, status: number, body: object): true {
  const text = JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text)
  return true
}

const all = (history: History) => [...history.tracks.values()].flatMap(({ operations }) => operations)

t.test('a sound service under load passes all checks', async t => {
  const { counts, history, violations } = await round(t, 2200, { brief: 0.03, tried: 0.35, inboxed: 0.2 })
  t.strictSame(violations.map(describe), [])
  t.equal(counts.handoffs, 2200)
  const tracks = [...history.tracks.values()]
  t.equal(tracks.filter(({ descent }) => descent === null).length, 2200)
  t.ok(tracks.some(({ descent }) => descent?.attempt === 4), 'some are tried again and again')
  t.match(counts, { unanswered: 0, unavailable: 0, givenUp: 0 })

  const seen = new Map<string, number>()
  const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)
  for (const { kind, status, code, replayed } of all(history)) count(`${kind} ${code ?? status}${replayed ? ' replayed' : ''}`)
  for (const { final } of tracks) if (final?.answer?.reissuedAs != null) count(`${final.answer.status} reissued`)
  const expected = ['pass 201', 'pass 201 replayed', 'catch 200', 'catch 200 replayed', 'catch already_caught', 'catch already_done', 'catch approval_required',
    'catch rejected', 'catch expired', 'done 200', 'done 200 replayed', 'done not_caught', 'done not_the_catcher', 'done already_done', 'status 200',
    'approve 200', 'approve already_decided', 'reject 200', 'reject already_decided',
    'catch not_yet', 'catch cancelled', 'heartbeat 200', 'heartbeat not_the_catcher', 'heartbeat cancelled', 'done cancelled', 'done already_failed', 'fail 200',
    'fail 200 replayed', 'fail already_done', 'fail cancelled', 'decline 200', 'decline 200 replayed', 'decline cancelled', 'cancel 200', 'cancel 202', 'cancel already_done',
    'cancel already_failed', 'reissue 201', 'reissue 201 replayed', 'reissue not_caught', 'reissue cancelled', 'reissue already_done',
    'failed reissued', 'declined reissued', 'cancelled reissued', 'expired reissued']
  t.strictSame(expected.filter(what => !seen.has(what)), [], 'it comes to all of these')
  const fromInboxes = tracks.filter(({ operations }) => operations.some(({ inbox, replayed }) => inbox !== undefined && !replayed))
  t.ok(fromInboxes.length > 250, `${fromInboxes.length} caught from inboxes`)
  t.ok(fromInboxes.some(({ descent }) => descent !== null), 'successors too')
  t.ok(fromInboxes.some(({ operations }) => operations.some(({ kind, status }) => kind === 'approve' && status === 200)), 'and what was approved')
  t.ok(tracks.every(({ final }) => final?.status === 200), 'the end of each is known')
})

t.test('a service that drops connections, before or after it carried the request out, passes all checks', async t => {
  let requests = 0
  const { counts, history, violations } = await round(t, 250, { brief: 0.05, tried: 0.3, inboxed: 0.3 }, (request, response) => {
    const number = ++requests
    if (number % 20 === 0) {
      request.socket.destroy()
      return true
    }
    if (number % 20 === 10) response.end = () => response.destroy()
  })
  t.strictSame(violations.map(describe), [])
  t.ok(counts.unanswered > 50, `${counts.unanswered} requests that nobody answered`)
  const asked = new Map<string, Operation[]>()
  for (const one of all(history)) if (one.token !== null) asked.set(one.token, [...asked.get(one.token) ?? [], one])
  const repeats = [...asked.values()].filter(([first, second]) => first?.answered === null && second?.replayed)
  t.ok(repeats.length > 0, `${repeats.length} repeats found that it had happened`)
})

t.test('a service with an outage passes all checks', async t => {
  let began: number | undefined
  const { counts, violations } = await round(t, 150, { tried: 0.3, inboxed: 0.3 }, (request, response) => clock() - (began ??= clock()) < 500
    ? answer(response, 503, { code: 'unavailable', status: 503 })
    : undefined)
  t.strictSame(violations.map(describe), [])
  t.ok(counts.unavailable > 16, `${counts.unavailable} times unavailable`)
})

const isPass = ({ method, url }: IncomingMessage) => method === 'POST' && url === '/api/pass'
const isCatch = ({ url }: IncomingMessage) => url!.startsWith('/api/catch/')
const isDone = ({ url }: IncomingMessage) => url!.startsWith('/api/done/')
const idOf = ({ url }: IncomingMessage) => url!.slice(url!.lastIndexOf('/') + 1)

/** Tampers with the tenth request that is the first of its kind for its handoff. */
function once (which: (request: IncomingMessage) => boolean, meddle: (request: IncomingMessage, response: ServerResponse) => true): Meddler {
  let passes = 0
  const seen = new Set<string>()
  return (request, response) => {
    if (!which(request)) return undefined
    const id = isPass(request) ? String(++passes) : idOf(request)
    return !seen.has(id) && seen.add(id).size === 10 ? meddle(request, response) : undefined
  }
}

/** Renames a member of the first payload that is answered. */
function rename (): Meddler {
  let renamed = false
  return (request, response) => {
    if (!isCatch(request)) return undefined
    spoil(response, body => {
      if (renamed || !body.includes('"of":"')) return body
      renamed = true
      return body.replace('"of":"', '"fo":"')
    })
    return undefined
  }
}

const isNext = ({ url }: IncomingMessage) => url!.startsWith('/api/catch?')

/** Gives an agent what another one of its tenant has just caught from an inbox. */
function givenTwice (): Meddler {
  const tenantOf = (request: IncomingMessage) => /the-key-of-(\w+)-/.exec(request.headers.authorization!)![1]
  let first: { request: IncomingMessage, body: string } | undefined
  let isTold = false
  return (request, response) => {
    if (!isNext(request)) return undefined
    if (first !== undefined && !isTold && tenantOf(request) === tenantOf(first.request) && request.headers.authorization !== first.request.headers.authorization) {
      isTold = true
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(first.body) }).end(first.body)
      return true
    }
    spoil(response, body => {
      if (body.split('handoff_id').length === 2) first ??= { request, body }
      return body
    })
    return undefined
  }
}

const iso = (milliseconds: number) => new Date(milliseconds).toISOString()

/** A change to one answer, and the invariant that must find it. */
const lies: Array<[what: string, invariant: string, lie: () => Meddler, inboxed?: number]> = [
  ['a catch that gives back something else', 'I3', rename],
  ['a done that is not done', 'I1', () => once(isDone, (request, response) =>
    answer(response, 200, { handoff_id: idOf(request), status: 'done', completed_at: iso(Date.now() - 1) }))],
  ['a pass that is not kept', 'I1', () => once(isPass, (_, response) => {
    const now = Date.now()
    return answer(response, 201, { handoff_id: `AAA${'A'.repeat(22)}`, status: 'pending', created_at: iso(now), expires_at: iso(now + 86_400_000) })
  })],
  ['a catch that is refused for nothing', 'I5', () => once(isCatch, (_, response) => answer(response, 409, { code: 'already_done', status: 409 }))],
  ['an inbox that gives the same twice', 'I2', givenTwice, 0.5],
  ['a 500', 'I8', () => once(isDone, (_, response) => answer(response, 500, { code: 'internal_error', status: 500 }))],
]

t.test('a service that does not sweep is found out', async t => {
  const { violations } = await round(t, 100, { brief: 0.05 }, undefined, false)
  t.ok(violations.length > 0)
  t.strictSame(violations.filter(({ invariant }) => invariant !== 'I7').map(describe), [])
})

t.test('one wrong answer among hundreds is found', async t => {
  for (const [what, invariant, lie, inboxed = 0] of lies) {
    const { violations } = await round(t, 60, { inboxed }, lie())
    t.ok(violations.some(violation => violation.invariant === invariant), `${invariant}: ${what}`, { violations: violations.map(describe) })
    t.equal(new Set(violations.map(({ handoff }) => handoff)).size, 1, 'of one handoff')
  }
})
