import { fuzzBody } from './fuzz-bodies.ts'
import type { FuzzBody } from './fuzz-bodies.ts'
import type { HttpClient, Reply } from './http-client.ts'
import { agentKeys, approverKeys, within } from './load-keys.ts'
import { packed, readDone, readPass, readStrictly } from './strict-json.ts'
import type { Strict } from './strict-json.ts'

/** The results of so many bodies. */
export interface FuzzTally {
  bodies: number
  accepted: number
  refused: number
  /** Bodies whose payload or result was read back and compared. */
  compared: number
  /** Breaches of the contract, with what reproduces them. */
  faults: string[]
}

const [passer, catcher] = within(agentKeys, 'north').map(({ secret }) => secret) as [string, string]
const [approver] = within(approverKeys, 'north').map(({ secret }) => secret) as [string]
const faultsKept = 20
/** A handoff with a lifetime of at most this many seconds may expire during its check. */
const brief = 5

/** Sends bodies one after another on one connection at a time, and checks each completely. */
export class FuzzRounds {
  readonly tally: FuzzTally = { bodies: 0, accepted: 0, refused: 0, compared: 0, faults: [] }
  readonly #client: HttpClient
  readonly #url: string
  readonly #seed: number

  constructor (client: HttpClient, url: string, seed: number) {
    this.#client = client
    this.#url = url
    this.#seed = seed
  }

  /** @param next returns each body's number, and null at the end */
  async work (next: () => number | null): Promise<void> {
    let caught: string | null = null
    for (let number = next(); number !== null && this.tally.faults.length < faultsKept; number = next()) {
      const body = fuzzBody(this.#seed, number)
      caught ??= body.operation === 'done' ? await this.#caught() : null
      const why = body.operation === 'pass' ? await this.#pass(body, id => { caught = id }) : await this.#done(body, caught!, () => { caught = null })
      this.tally.bodies++
      if (why !== null) this.#tell(number, body, why)
    }
  }

  /** @param then called with a handoff that was caught in the end @returns what is wrong, or null */
  async #pass ({ bytes }: FuzzBody, then: (id: string) => void): Promise<string | null> {
    const expected = readPass(bytes)
    const reply = await this.#post('/api/pass', passer, bytes)
    if (typeof expected === 'string') return this.#refusal(reply, expected)
    if (reply?.status !== 201) return `${asText(reply)}, though it is fine`
    this.tally.accepted++
    const { handoff_id: id } = JSON.parse(reply.body) as { handoff_id: string }
    if (expected.values.require_human === true) {
      const approved = await this.#post(`/api/approve/${id}`, approver, Buffer.alloc(0))
      if (approved?.status !== 200) return `approve: ${asText(approved)}`
    }
    const caught = await this.#get(`/api/catch/${id}`, catcher)
    const { expires_in: expiresIn } = expected.values
    if (caught?.status === 410 && typeof expiresIn === 'number' && expiresIn <= brief) return null
    if (caught?.status !== 200) return `catch: ${asText(caught)}`
    then(id)
    return this.#isAsPassed(caught, expected)
  }

  #isAsPassed (caught: Reply, { texts }: Strict): string | null {
    const read = readStrictly(Buffer.from(caught.body))
    if (typeof read === 'string') return `catch answered ${asText(caught)}: ${read}`
    for (const [name, absent] of [['task', ''], ['output', '{}'], ['context', '{}'], ['constraints', 'null']] as const) {
      const text = texts.get(name)
      const wanted = text === undefined || text === 'null' ? absent : text
      if (read.texts.get(name) !== wanted) return `${name} came back as ${read.texts.get(name)?.slice(0, 200)}`
    }
    this.tally.compared++
    return null
  }

  async #done ({ bytes }: FuzzBody, id: string, then: () => void): Promise<string | null> {
    const expected = readDone(bytes)
    const reply = await this.#post(`/api/done/${id}`, catcher, bytes)
    if (typeof expected === 'string') return this.#refusal(reply, expected)
    then()
    if (reply?.status !== 200) return `${asText(reply)}, though it is fine`
    this.tally.accepted++
    const status = await this.#get(`/api/status/${id}`, passer)
    const output = expected.texts.get('output')
    if (status?.status !== 200) return `status: ${asText(status)}`
    const result = output === undefined || output === 'null' ? null : output
    const read = readStrictly(Buffer.from(status.body))
    const said = typeof read === 'string' ? read : read.texts.get('result')
    // Without an output the result may be null or an empty object.
    if (result === null ? said !== 'null' && said !== '{}' : said !== packed(result)) return `the result came back as ${said?.slice(0, 200)}`
    this.tally.compared++
    return null
  }

  #refusal (reply: Reply | null, why: string): string | null {
    this.tally.refused++
    return reply?.status === 400 && (JSON.parse(reply.body) as { code: string }).code === 'invalid_request' ? null : `${asText(reply)}, though: ${why}`
  }

  /** A caught handoff to report done. */
  async #caught (): Promise<string> {
    const passed = await this.#post('/api/pass', passer, Buffer.from('{"task":"t"}'))
    const { handoff_id: id } = JSON.parse(passed!.body) as { handoff_id: string }
    await this.#get(`/api/catch/${id}`, catcher)
    return id
  }

  #post (path: string, secret: string, body: Buffer): Promise<Reply | null> {
    const head = `POST ${path} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer ${secret}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    return this.#client.ask(this.#url, Buffer.concat([Buffer.from(head), body]))
  }

  #get (path: string, secret: string): Promise<Reply | null> {
    return this.#client.ask(this.#url, `GET ${path} HTTP/1.1\r\nHost: service\r\nAuthorization: Bearer ${secret}\r\n\r\n`)
  }

  #tell (number: number, { operation, bytes }: FuzzBody, why: string): void {
    this.tally.faults.push(`seed ${this.#seed}, body ${number}, ${operation}: ${why}: ${JSON.stringify(bytes.toString('latin1').slice(0, 500))} (as latin1)`)
  }
}

function asText (reply: Reply | null): string {
  return reply === null ? 'no answer' : `${reply.status} ${reply.body.slice(0, 200)}`
}
