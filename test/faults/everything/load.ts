import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { noCounts } from '../asking.ts'
import type { Asking } from '../asking.ts'
import { clock } from '../history.ts'
import { besideKeys } from '../load-keys.ts'
import { Random } from '../random.ts'
import { Caller } from './caller.ts'
import type { Answer } from './caller.ts'

/**
 * I22: A2A's tasks, the ticks of schedules and files, beside the load of all the rest and in a tenant of their own. A message is one task, which
 * ends with what its worker said; a tick makes one handoff, at its time, and none is left out; a file that was passed, or came back, is whole.
 * Nothing is caught twice.
 */

const inboxes = ['tasks', 'ticks', 'parcels'] as const
/** How many of each are under way. */
const atOnce = { tasks: 3, parcels: 3, workers: 2 }
const schedules = 6
/** The shortest there is (s). */
const every = 10
/** Between two of one caller (ms): the load is others'. */
const pause = 100
/** For how long a tick's run may be noted late (ms). */
const noted = 60_000

interface Run { scheduled_for: string, by: string, outcome: string, handoff_id?: string }

const card = { description: 'Echoes texts.', skills: [{ id: 'echo', name: 'Echo', description: 'Says what it is told.', tags: ['text'] }] }
const digestOf = (text: string) => createHash('sha256').update(text).digest('hex')

export class EverythingLoad {
  readonly faults: Array<{ member: string, sentence: string }> = []
  readonly ended = { tasks: 0, ticks: 0, files: 0 }
  readonly #random: Random
  readonly #passer: Caller
  readonly #worker: Caller
  readonly #operator: Caller
  /** Which catch brought each handoff, and which tick of a schedule it is. */
  readonly #caught = new Map<string, string>()
  readonly #ticks = new Map<string, string>()
  readonly #asked = new Set<string>()
  readonly #run = randomUUID()
  readonly #isRemembered: boolean

  /** @param isRemembered whether there are files, which are noted for an hour after their handoffs, and runs with an Idempotency-Key */
  constructor (urls: readonly string[], seed: number, isRemembered = true) {
    this.#isRemembered = isRemembered
    this.#random = new Random(seed)
    this.#passer = new Caller(urls, besideKeys.passer)
    this.#worker = new Caller(urls, besideKeys.worker)
    this.#operator = new Caller(urls, besideKeys.operator)
  }

  /** Begins tasks, runs and parcels until this is aborted, and goes on until all of them have ended. */
  async run (until: AbortSignal): Promise<void> {
    await this.#is(200, this.#operator.ask('PUT', '/api/inboxes/tasks', { card }), 'the card')
    const names = Array.from({ length: schedules }, (_, n) => `s${n}`)
    await Promise.all(names.map(name => this.#passer.ask('PUT', `/api/schedules/${name}`, {
      every, overlap: 'allow', handoff: { to: 'ticks', task: 'at {{scheduled_for}}' },
    })))
    const over = new AbortController()
    const working = Promise.all(Array.from({ length: atOnce.workers }, (_, n) => this.#work(n, over.signal)))
    working.catch(() => {}) // awaited below
    const again = async (each: (n: number) => Promise<void>) => {
      for (let n = 0; !until.aborted; n++) {
        await each(n)
        await sleep(pause, undefined, { signal: until }).catch(() => {})
      }
    }
    const callers = [
      ...Array.from({ length: atOnce.tasks }, () => again(() => this.#task())),
      ...this.#isRemembered ? Array.from({ length: atOnce.parcels }, () => again(() => this.#parcel())) : [],
      ...this.#isRemembered ? [again(async n => await this.#runNow(names[n % names.length]!))] : [],
    ]
    try {
      await Promise.race([Promise.all(callers), working])
      await Promise.all(names.map(name => this.#passer.ask('POST', `/api/schedules/${name}/pause`)))
      for (const name of names) await this.#checkRuns(name)
      await Promise.all(names.map(name => this.#passer.ask('DELETE', `/api/schedules/${name}`)))
      await this.#operator.ask('PUT', '/api/inboxes/tasks', { card: null })
      over.abort()
      await working
    } finally {
      over.abort()
      for (const caller of [this.#passer, this.#worker, this.#operator]) caller.close()
    }
  }

  /** What came of all requests. */
  get counts (): Asking['counts'] {
    const counts = noCounts()
    for (const caller of [this.#passer, this.#worker, this.#operator]) {
      for (const name of Object.keys(counts) as Array<keyof typeof counts>) counts[name] += caller.counts[name]
    }
    return counts
  }

  #wrong (id: string, sentence: string): void {
    this.faults.push({ member: `${besideKeys.passer.tenant}:${id}`, sentence })
  }

  /** Says it if this is answered otherwise. */
  async #is (status: number, asked: Promise<Answer>, what: string): Promise<Answer['body']> {
    const answer = await asked
    if (answer.status !== status) this.#wrong(what, `${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  async #work (number: number, over: AbortSignal): Promise<void> {
    for (let n = 0; !over.aborted; n++) {
      const key = `${this.#run}-${number}-${n}`
      const { items } = await this.#is(200, this.#worker.ask('POST', '/api/catch?wait=1', { inboxes, max: 3 }, key), 'a catch')
      for (const item of items) await this.#serve(item, key)
    }
  }

  async #serve (item: any, key: string): Promise<void> {
    const id = String(item.handoff_id)
    const before = this.#caught.get(id)
    if (before !== undefined) this.#wrong(id, `it was caught by ${before}, and by ${key}`)
    this.#caught.set(id, key)
    if (item.to === 'ticks') this.#noteTick(id, item)
    const files = item.to === 'parcels' ? [await this.#sendBack(id, item)] : undefined
    await this.#is(200, this.#worker.ask('POST', `/api/done/${id}`, { output: { echo: item.task }, ...files && { files } }, `done-${id}`), id)
  }

  /** A message, which may be sent again, and its task until that has ended. */
  async #task (): Promise<void> {
    const [text, messageId] = [`write ${randomUUID()}`, randomUUID()]
    const rpc = async (method: string, params: object) => {
      const { body } = await this.#passer.ask('POST', `/a2a/${besideKeys.passer.tenant}/tasks`, { jsonrpc: '2.0', id: 1, method, params })
      if (body?.result === undefined) this.#wrong(messageId, `${method}: ${JSON.stringify(body)}`)
      return body?.result
    }
    const send = () => rpc('SendMessage', { message: { messageId, role: 'ROLE_USER', parts: [{ text }] }, configuration: { returnImmediately: true } })
    const sent = [await send(), ...this.#random.chance(0.3) ? [await send()] : []]
    const ids = new Set(sent.map(result => String(result?.task?.id)))
    const [id] = ids
    if (ids.size > 1) this.#wrong(messageId, `one message has the tasks ${[...ids].join(', ')}`)
    for (;;) {
      const task = await rpc('GetTask', { id })
      const state = task?.status?.state
      if (state === 'TASK_STATE_SUBMITTED' || state === 'TASK_STATE_WORKING') {
        await sleep(pause)
        continue
      }
      if (state !== 'TASK_STATE_COMPLETED' || !JSON.stringify(task.artifacts).includes(text)) this.#wrong(id!, `its task ended as ${JSON.stringify(task)}`)
      this.ended.tasks++
      return
    }
  }

  /** A file that is passed, and one that comes back with the result. */
  async #parcel (): Promise<void> {
    const content = randomBytes(this.#random.between(0, 2500)).toString('hex')
    const key = randomUUID()
    const uri = await this.#upload(this.#passer, content, key)
    const body = { to: 'parcels', task: digestOf(content), files: [{ name: 'parcel', uri }] }
    const { handoff_id: id } = await this.#is(201, this.#passer.ask('POST', '/api/pass', body, key), 'a pass with a file')
    for (;;) {
      const status = await this.#is(200, this.#passer.ask('GET', `/api/status/${id}?wait=1`), id)
      if (status.status === 'pending' || status.status === 'caught') continue
      const back = status.status === 'done' ? await this.#fetch(this.#passer, status.result_files[0], status.result_file_urls[0]) : null
      if (back !== content) this.#wrong(id, `its file didn't come back: ${JSON.stringify(status)}`)
      this.ended.files += 2
      return
    }
  }

  /** Sends what came with a handoff back with its result. */
  async #sendBack (id: string, { task, files, file_urls: urls }: any): Promise<object> {
    const text = await this.#fetch(this.#worker, files[0], urls[0])
    if (digestOf(text) !== task || files[0].sha256 !== task) this.#wrong(id, `of its file ${text} came`)
    return { name: 'back', uri: await this.#upload(this.#worker, text, `back-${id}`) }
  }

  /** @param given null where it couldn't be had when the handoff was answered: then it is asked for */
  async #fetch (who: Caller, { uri }: any, given: { url: string } | null): Promise<string> {
    const url = given?.url ?? (await this.#is(200, who.ask('GET', `/api/files/${uri.slice('handoff-file:'.length)}`), uri)).url
    const { status, body } = await who.file(url)
    if (status !== 200) this.#wrong(uri, `its download was answered ${status}`)
    return body
  }

  /** @returns the file's URI */
  async #upload (who: Caller, text: string, key: string): Promise<string> {
    const made = await this.#is(201, who.ask('POST', '/api/files', { name: 'a', bytes: text.length, sha256: digestOf(text) }, `file-${key}`), 'a file')
    const { status } = await who.file(made.upload.url, { text, headers: made.upload.headers })
    if (status !== 204) this.#wrong(made.file_id, `an upload was answered ${status}`)
    return made.uri
  }

  async #runNow (name: string): Promise<void> {
    const made = await this.#is(201, this.#passer.ask('POST', `/api/schedules/${name}/run`, {}, randomUUID()), name)
    this.#asked.add(made.handoff_id)
    await sleep(pause * 10)
  }

  #noteTick (id: string, { schedule, scheduled_for: time }: any): void {
    const tick = `${schedule} ${time}`
    const before = this.#ticks.get(tick)
    if (before !== undefined && !this.#asked.has(before) && !this.#asked.has(id)) this.#wrong(id, `${tick} has made ${before} too`)
    this.#ticks.set(tick, id)
    this.ended.ticks++
  }

  /** Of a schedule that is paused by now: all its ticks are noted, in their order, and what they made was caught. */
  async #checkRuns (name: string): Promise<void> {
    const read = async () => (await this.#is(200, this.#passer.ask('GET', `/api/schedules/${name}/runs?limit=100`), name)).items as Run[]
    let wrong: string[] = []
    for (const end = clock() + noted; clock() < end; await sleep(500)) {
      const runs = await read()
      const times = runs.filter(({ by }) => by === 'tick').map(({ scheduled_for: time }) => Date.parse(time)).sort((a, b) => a - b)
      wrong = [
        ...runs.filter(({ outcome }) => outcome !== 'passed').map(run => JSON.stringify(run)),
        ...times.flatMap((time, at) => at === 0 || time - times[at - 1]! === every * 1000 ? [] : [`${new Date(time).toISOString()} comes after ${new Date(times[at - 1]!).toISOString()}`]),
        ...runs.flatMap(({ handoff_id: id }) => id === undefined || this.#caught.has(id) ? [] : [`${id} wasn't caught`]),
        ...[...this.#ticks].flatMap(([tick, id]) => tick.startsWith(`${name} `) && runs.length < 100 && !runs.some(run => run.handoff_id === id) ? [`${tick}, ${id}, isn't noted`] : []),
      ]
      if (wrong.length === 0) return
    }
    for (const sentence of wrong) this.#wrong(name, sentence)
  }
}
