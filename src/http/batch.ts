import { errorTable, Problem, invalid } from '../errors.ts'
import { isId, tagOf } from '../handoff/id.ts'
import { untilEndsAreHeard, type WaitOptions } from '../handoff/waiter.ts'
import type { Caller } from '../model.ts'
import { hasScope, refusedScope } from '../auth/key-grant.ts'
import type { BatchAnswers } from './answer-room.ts'
import { batchOperations } from './batch-body.ts'
import type { BatchOperation, Entry } from './batch-body.ts'
import { membersOf } from './body.ts'
import type { Asked, Operation, Operations, Outcome } from './operations.ts'
import { asProblem, problemText, readFault } from './problem.ts'
import type { BatchLimit } from './rate-limit.ts'
import type { Moved, Requests } from './requests.ts'
import { Turns } from './turns.ts'
import { strictValidator } from './validation.ts'

type Validate = ReturnType<typeof strictValidator>

/** An operation with what a batch needs for it, made once. */
interface Member { operation: Operation, validate: Validate | null, count: ReturnType<Requests['counterOf']> }

/** Who sent a batch, and the request that it came with. */
export interface Batcher extends Pick<WaitOptions, 'grant' | 'isGone'> { caller: Caller, traceparent: string | undefined, requestId: string, limit: BatchLimit, answers: BatchAnswers }

const nothing = Buffer.alloc(0)
/** What an answer may have beyond the body that it was made of, in bytes. */
const envelope = 4096

/**
 * How many operations of all batches read at once at a master. What catch and status read may be a megabyte each, and Redis answers all that
 * arrives together before it serves anybody else: a hundred of them kept it busy for most of a second, and three times as many for longer than a
 * connection waits for it.
 */
const readsAtOnce = 16
/** After so many milliseconds an operation asks again whether it may still run. A key must stop working within 2 s. */
const longAgo = 100

/** Carries out the operations of a batch, each as if it were a request of its own. */
export class Batches {
  readonly #members: Record<BatchOperation, Member>
  readonly #requests: Requests
  readonly #bodyLimit: number
  readonly #base: string
  readonly #onFault: (error: unknown, batcher: Batcher) => void
  readonly #masterOf: (tag: string) => string | undefined
  readonly #turns = new Turns(readsAtOnce)

  /** @param bodyLimit for each operation's body, in bytes @param base BASE_URL's path @param masterOf the name of a partition's master, as far as known */
  constructor (operations: Operations, requests: Requests, bodyLimit: number, base: string, masterOf: (tag: string) => string | undefined, onFault: (error: unknown, batcher: Batcher) => void) {
    this.#members = Object.fromEntries(batchOperations.map(name => {
      const operation = operations[name]
      const validate = operation.body === null ? null : strictValidator(operation.body)
      return [name, { operation, validate, count: requests.counterOf(operation.method, operation.route) }]
    })) as Record<BatchOperation, Member>
    this.#requests = requests
    this.#bodyLimit = bodyLimit
    this.#base = base
    this.#masterOf = masterOf
    this.#onFault = onFault
  }

  /** @returns the answer's JSON in pieces, and which handoffs were moved */
  async run (entries: readonly Entry[], batcher: Batcher): Promise<{ pieces: Buffer[], moved: Moved }> {
    const began = performance.now()
    const all = await Promise.all(entries.map(async entry => {
      const outcome = await this.#one(entry, batcher)
      this.#members[entry.op].count(outcome.status, performance.now() - began)
      return outcome
    }))
    const changes = all.map(({ moved }) => moved)
    return {
      pieces: resultsText(all),
      moved: { to: changes.flatMap(({ to }) => to), ids: changes.flatMap(({ ids = [] }) => ids), reissued: changes.flatMap(({ reissued = [] }) => reissued) },
    }
  }

  async #one (entry: Entry, batcher: Batcher): Promise<Outcome> {
    try {
      const { operation, validate } = this.#members[entry.op]
      if (!hasScope(batcher.caller, operation.scope)) throw refusedScope(operation.scope)
      const pending = batcher.limit.spend()
      if (pending !== undefined) await pending
      const asked = this.#ask(entry, operation, validate, batcher)
      // Those that send something read nothing of that size, and what isn't an id is never looked for.
      return await (operation.method === 'GET' && isId(asked.id) ? this.#read(() => operation.run(asked), asked.id, batcher) : operation.run(asked))
    } catch (error) {
      const problem = asProblem(error)
      this.#requests.refused(problem.code)
      if (problem.code === 'internal_error') this.#onFault(error, batcher)
      return { status: errorTable[problem.code].status, answer: problemText(problem, batcher.requestId, this.#base), replayed: false, moved: { to: [] } }
    }
  }

  #read (run: () => Promise<Outcome>, id: string, { caller, grant, isGone, answers }: Batcher): Promise<Outcome> {
    const came = performance.now()
    const turn = (operation: () => Promise<Outcome | null>) => this.#turns.run(this.#masterOf(tagOf(id)), caller.tenant, operation)
    return answers.read(this.#bodyLimit + envelope, turn, async () => {
      if (performance.now() - came > longAgo) {
        await untilEndsAreHeard()
        // Nobody gets the answer, and what is caught for nobody is caught until its time is over.
        if (isGone()) throw new Problem('request_timeout')
        await grant().authorise()
      }
      const outcome = await run()
      return [outcome, Buffer.isBuffer(outcome.answer) ? outcome.answer.length : envelope]
    })
  }

  #ask ({ id, body: bytes = nothing, key }: Entry, { nested }: Operation, validate: Validate | null, { caller, traceparent }: Batcher): Asked {
    if (bytes.length > this.#bodyLimit) throw new Problem('payload_too_large')
    const members = membersOf(bytes, nested)
    const faults = validate?.(members.values)
    if (faults != null) throw invalid(...faults.map(fault => readFault(fault, 'body')))
    return { caller, id, body: members.values, members, bytes, key, traceparent, waiting: null, until: 'done' }
  }
}

/** `{"results":[…]}`, with each answer's bytes as they are. */
function resultsText (all: readonly Outcome[]): Buffer[] {
  const parts: Buffer[] = []
  let text = '{"results":['
  all.forEach(({ status, answer, replayed }, at) => {
    text += `${at === 0 ? '' : ','}{"status":${status},"body":`
    if (Buffer.isBuffer(answer)) {
      parts.push(Buffer.from(text), answer)
      text = ''
    } else text += typeof answer === 'string' ? answer : JSON.stringify(answer)
    text += replayed ? ',"replayed":true}' : '}'
  })
  return [...parts, Buffer.from(`${text}]}`)]
}
