import { setTimeout as sleep } from 'node:timers/promises'
import { handoff, parsed } from '../helpers/command.ts'
import { keepSecret } from '../helpers/log-sink.ts'

/** What comes and goes beside a load: tenants with keys of their own, which use everything once, read everything, and leave nothing. */

const scopes = 'pass,catch,status,approve,operate,webhooks'
const reads = [
  '/', '/metrics', '/readyz', '/openapi.json', '/llms.txt', '/clients/', '/problems', '/docs',
  '/api/handoffs?limit=100', '/api/handoffs?state=failed&limit=100', '/api/handoffs?passed_by=visitor&labels=team:red', '/api/inboxes', '/api/approvals',
  '/api/asks', '/api/asks?of=passer', '/api/events?after=0-0', '/api/events?wait=1', '/api/webhooks',
]
const pages = ['/console', '/console/activity', '/console/failed', '/console/agents', '/console/find?q=team:red', '/approvals', '/approvals/list', '/approvals/nobody']

export class Visitor {
  readonly #url: string
  readonly #pause: number
  readonly tenant: string
  readonly #env: Record<string, string>
  #headers: Record<string, string> = {}
  /** Answers that can't be. */
  readonly wrong: string[] = []
  requests = 0

  /** @param env the service's settings @param pause between two requests, in milliseconds */
  constructor (url: string, tenant: string, env: Record<string, string>, pause: number) {
    this.#url = url
    this.tenant = tenant
    this.#env = env
    this.#pause = pause
  }

  /** Comes with a key of its own, does everything once, and has its key revoked. */
  async visit (): Promise<void> {
    const { id, key } = await this.#command('keys', 'create', '--name', 'visitor', '--tenant', this.tenant, '--scopes', scopes)
    keepSecret(key)
    this.#headers = { authorization: `Bearer ${key}` }
    await this.#command('limits', 'set', '--tenant', this.tenant, '--rate-limit', '100000')
    const stream = new AbortController()
    const streamed = fetch(`${this.#url}/api/events`, { headers: { ...this.#headers, accept: 'text/event-stream' }, signal: stream.signal })
      .then(answer => answer.text()).catch(() => {}) // it is cut
    const passed = await this.#work()
    for (const path of reads) await this.#ask('GET', path)
    await this.#look(key, passed)
    stream.abort()
    await streamed
    await this.#command('limits', 'remove', '--tenant', this.tenant)
    await this.#command('keys', 'revoke', id)
  }

  /** Passes to an inbox, catches, asks, answers, ends. @returns an id */
  async #work (): Promise<string> {
    const inbox = `box-${this.tenant}`
    await this.#ask('PUT', `/api/inboxes/${inbox}`, { max_caught: 50, max_pending: 1000 })
    const hook = await this.#ask('POST', '/api/webhooks', { url: 'http://127.0.0.1:9/', labels: { run: this.tenant } })
    const labels = { team: 'red', run: this.tenant }
    const first = await this.#ask('POST', '/api/pass', { task: 'visit', to: inbox, labels })
    const after = await this.#ask('POST', '/api/pass', { task: 'visit', to: inbox, labels, after: [first.handoff_id] })
    await this.#ask('POST', '/api/catch?wait=1', { inboxes: [inbox, `${inbox}-2`] })
    await this.#ask('POST', `/api/heartbeat/${first.handoff_id}`, { progress: { percent: 50 } })
    const { ask_id: askId } = await this.#ask('POST', `/api/ask/${first.handoff_id}`, { question: 'Which one?', of: 'passer', schema: { type: 'object', properties: { [`a-${this.tenant}`]: { type: 'string' } } } })
    await this.#ask('POST', `/api/answer/${first.handoff_id}`, { ask_id: askId, answer: {} })
    await this.#ask('POST', `/api/done/${first.handoff_id}`, { output: {} })
    const operations = [{ op: 'pass', body: { task: 'batch', labels, result_schema: { required: [this.tenant] } } }, { op: 'status', id: after.handoff_id }]
    const { results: [{ body: { handoff_id: left } }] } = await this.#ask('POST', '/api/batch', { operations })
    await this.#ask('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'handoff_catch_next', arguments: { inbox, wait: 1 } } })
    await this.#ask('POST', `/api/fail/${after.handoff_id}`, { error: { message: 'no', code: this.tenant } })
    await this.#ask('POST', '/api/redrive', { inbox })
    await this.#ask('POST', '/api/purge', { inbox })
    await this.#ask('POST', '/api/wait?wait=1', { ids: [first.handoff_id, after.handoff_id, left] })
    await this.#ask('GET', `/api/status/${left}?wait=1`)
    await this.#ask('POST', `/api/cancel/${left}`)
    await this.#ask('DELETE', `/api/webhooks/${hook.id}`)
    await this.#ask('PUT', `/api/inboxes/${inbox}`, { max_caught: null, max_pending: null })
    return first.handoff_id
  }

  /** Signs in, looks at all pages, and signs out. */
  async #look (key: string, passed: string): Promise<void> {
    const send = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
      fetch(this.#url + path, { method: 'POST', redirect: 'manual', headers: { 'sec-fetch-site': 'same-origin', ...headers }, body: new URLSearchParams(fields) })
    const signedIn = await send('/approvals/sign-in', { key, next: '/console' })
    await signedIn.text()
    const cookie = signedIn.headers.getSetCookie().map(one => one.split(';', 1)[0]).join('; ')
    this.#headers = { cookie }
    for (const path of [...pages, `/console/handoffs/${passed}`, `/console/inboxes/box-${this.tenant}`]) await this.#ask('GET', path)
    await (await send('/approvals/sign-out', {}, { cookie })).text()
  }

  async #ask (method: string, path: string, body?: object): Promise<any> {
    const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const answer = await fetch(this.#url + path, { method, headers: { ...this.#headers, ...json }, ...body !== undefined && { body: JSON.stringify(body) } })
    const text = await answer.text()
    this.requests++
    if (!answer.ok && path !== '/approvals/nobody') this.wrong.push(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`)
    await sleep(this.#pause)
    return answer.headers.get('content-type')?.includes('json') === true ? JSON.parse(text) : {}
  }

  async #command (...args: string[]): Promise<{ id: string, key: string }> {
    return parsed(await handoff([...args, '--json'], { env: this.#env }))
  }
}
