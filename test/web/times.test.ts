import t from 'tap'
import type { Test } from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { personWith, textOf } from '../helpers/forms.ts'

/** Pages that are narrowed to a time: from `since` on, and before `until`. */

const service = await testApp(t)
const { call, pass, setClock } = service
const start = Date.now()
const at = (minute: number, zone = 'Z') => {
  const ahead = zone === 'Z' ? 0 : Number(zone.slice(1, 3)) * 3_600_000
  return encodeURIComponent(new Date(start + minute * 60_000 + ahead).toISOString().replace('Z', zone))
}
/** What happened a minute after the other. */
async function each (happen: () => Promise<string>): Promise<[string, string, string]> {
  const ids: string[] = []
  for (const minute of [0, 1, 2]) {
    await setClock(start + minute * 60_000)
    ids.push(await happen())
  }
  return ids as [string, string, string]
}

t.test('what failed', async t => {
  const ids = await each(async () => {
    const id = await pass({ to: 'w' })
    await call('bob', 'GET', `/api/catch/${id}`)
    await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'x' } })
    return id
  })
  await narrows(t, '/console/failed', secrets.operator, ids, body => [...body.matchAll(/name="id" value="([^"]+)"/g)].map(([, id]) => id!), 400)
})

t.test('what was decided', async t => {
  const ids = await each(async () => {
    const id = await pass({ require_human: true })
    t.equal((await call('approver', 'POST', `/api/approve/${id}`)).statusCode, 200)
    return id
  })
  const listed = (body: string) => [...new Set([...body.matchAll(/href="\/approvals\/([A-Za-z0-9_-]{25})"/g)].map(([, id]) => id!))]
  await narrows(t, '/approvals/decided', secrets.approver, ids, listed, 200)
  const ask = await personWith(service, secrets.approver)
  const { body } = await ask(`/approvals/decided.csv?since=${at(1)}&until=${at(2)}`)
  t.strictSame(ids.map(id => body.includes(id)), [false, true, false], 'the file too')
})

/** @param wrong the status of an answer to what is no time */
async function narrows (t: Test, url: string, key: string, [first, second, third]: readonly [string, string, string], listed: (body: string) => string[], wrong: number) {
  const ask = await personWith(service, key)
  const found = async (query: string) => listed((await ask(`${url}?${query}`)).body)
  t.strictSame(await found(''), [third, second, first], 'the latest first')
  t.strictSame(await found(`since=${at(1)}`), [third, second], 'from then on')
  t.strictSame(await found(`until=${at(1)}`), [first], 'before then')
  t.strictSame(await found(`since=${at(1)}&until=${at(2)}`), [second])
  t.strictSame(await found(`since=${at(1, '+02:00')}`), [third, second], 'in another zone')
  t.strictSame(await found(`since=${at(3)}`), [])
  for (const query of ['since=yesterday', 'until=2026-13-01', 'since=9999-12-31T23:59&since.zone=-01:00']) {
    const { statusCode, body } = await ask(`${url}?${query}`)
    t.equal(statusCode, wrong, query)
    t.match(textOf(body), /time/i)
  }
}
