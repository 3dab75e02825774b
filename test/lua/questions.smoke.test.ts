import fc from 'fast-check'
import t from 'tap'
import { askAt, deadlineOf, isResting } from '../../src/core/model.ts'
import type { AskState } from '../../src/core/model.ts'
import { tagOf } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import { isWhole } from '../helpers/extent.ts'

/**
 * How a question stands, by three who must agree in every state and at every moment: lua/answer.lua, which refuses accordingly; core/model.ts
 * (askAt), which every answer tells; and the model here, which only adds up times.
 */

const work = 20_000
const most = 60_000
const second = 1000
/** An answer in nobody's name: of an open question it is refused too, and so it never changes anything. */
const refusals: Partial<Record<string, AskState | 'none'>> = {
  not_asked: 'none', no_scope: 'open', already_answered: 'answered', expired: 'expired', withdrawn: 'withdrawn'
}

/** The handoff by the times alone. `rests` is what was left of the work when its question was asked. */
interface Known {
  now: number
  /** The work never lasts longer. */
  latest: number
  deadline: number
  heard: number
  beat: number
  question: { id: string, of: string, expires: number, rests: number, state: AskState } | null
  endedAt: number | null
}

/** When the work ends if nothing more happens. While its question is open, that is if nobody answers. */
function endOf ({ question, latest, deadline, heard, beat }: Known): number {
  if (question?.state !== 'open') return Math.min(deadline, beat)
  return Math.min(question.expires + Math.min(question.rests, heard), latest)
}

/** What happens by itself: the question's end, and that of the work. */
function goOn (known: Known): AskState | 'none' {
  const { question, now, latest, heard } = known
  const end = endOf(known)
  if (question?.state === 'open' && Math.min(now, end) >= question.expires) {
    question.state = 'expired'
    known.deadline = Math.min(question.expires + question.rests, latest)
    known.beat = question.expires + heard
  }
  if (known.endedAt === null && now >= end) known.endedAt = end
  if (question?.state === 'open' && known.endedAt !== null) question.state = 'withdrawn'
  return question?.state ?? 'none'
}

const move = fc.oneof(
  fc.record({ op: fc.constant('wait' as const), ms: fc.oneof(fc.integer({ min: 0, max: 9000 }), fc.constantFrom(0, 1, 5000, 40_000)) }),
  fc.record({ op: fc.constant('until' as const), what: fc.constantFrom('question' as const, 'end' as const), by: fc.constantFrom(-1, 0, 1) }),
  fc.record({ op: fc.constant('ask' as const), seconds: fc.constantFrom(1, 5, 30, 60), of: fc.constantFrom('person', 'passer') }),
  fc.record({ op: fc.constantFrom('answer' as const, 'answer' as const, 'sweep' as const) }),
  fc.record({ op: fc.constant('heartbeat' as const), extendBy: fc.constantFrom(undefined, 3, 30) }),
  fc.record({ op: fc.constantFrom('done' as const, 'fail' as const, 'cancel' as const, 'reissue' as const) })
)
const walk = fc.record({ within: fc.option(fc.constantFrom(5, 10), { nil: undefined }), moves: fc.array(fc.oneof({ weight: 9, arbitrary: move }), { minLength: 4, maxLength: 14 }) })

t.test('answer.lua, askAt and the times agree on how a question stands, whatever happens', { timeout: 300_000 }, async t => {
  const app = await testApp(t, { MAX_WORK_TTL: String(most / second), WORK_TTL: String(work / second) })
  const { asks, handoffs } = app.store
  const start = Date.now() + 3600_000
  const met = new Set<string>()
  let answers = 0
  await fc.assert(fc.asyncProperty(walk, async ({ within, moves }) => {
    await app.setClock(start)
    const id = await app.pass({ heartbeat_within: within, expires_in: 3600 })
    const place = { tenant: 'default', id, tag: tagOf(id) }
    await app.call('bob', 'GET', `/api/catch/${id}`)
    const heard = within === undefined ? Infinity : within * second
    const known: Known = { now: start, latest: start + most, deadline: start + work, heard, beat: start + heard, question: null, endedAt: null }
    const post = async (who: 'alice' | 'bob' | 'approver', operation: string, body: object) => app.call(who, 'POST', `/api/${operation}/${id}`, body)
    const check = (isDone: boolean, isRight: boolean, step: object) => {
      if (isDone !== isRight) throw new Error(`${known.now - start}: ${JSON.stringify(step)} is done: ${isDone}, with ${JSON.stringify(known)}`)
    }
    for (const step of moves) {
      const state = goOn(known)
      const isCaught = known.endedAt === null
      switch (step.op) {
        case 'wait':
        case 'until': {
          const to = step.op === 'wait' ? known.now + step.ms : (step.what === 'end' ? endOf(known) : known.question?.expires ?? 0) + step.by
          known.now = Math.max(known.now, Math.min(to, start + 2 * most))
          await app.setClock(known.now)
          break
        }
        case 'sweep': await handoffs.sweep(place.tag, 100); break
        case 'ask': {
          const answer = await post('bob', 'ask', { question: 'q', of: step.of, expires_in: step.seconds })
          check(answer.statusCode === 201, isCaught && state !== 'open', step)
          if (answer.statusCode !== 201) break
          known.question = { id: answer.json().ask_id, of: step.of, expires: known.now + step.seconds * second, rests: known.deadline - known.now, state: 'open' }
          break
        }
        case 'answer': {
          const { id: askId, of } = known.question ?? { id: 'x'.repeat(22), of: 'person' }
          check((await post(of === 'passer' ? 'alice' : 'approver', 'answer', { ask_id: askId, answer: { n: ++answers } })).statusCode === 200, state === 'open', step)
          if (state !== 'open') break
          known.question!.state = 'answered'
          known.deadline = Math.min(known.now + known.question!.rests, known.latest)
          known.beat = known.now + heard
          break
        }
        case 'heartbeat': {
          check((await post('bob', 'heartbeat', { extend_by: step.extendBy })).statusCode === 200, isCaught, step)
          const more = (step.extendBy ?? 0) * second
          if (!isCaught) break
          if (state === 'open') {
            known.question!.rests += more
          } else {
            if (more > 0) known.deadline = Math.max(known.deadline, Math.min(known.now + more, known.latest))
            known.beat = known.now + heard
          }
          break
        }
        default: {
          const body = { done: {}, fail: { error: { message: 'e' } }, cancel: { force: true }, reissue: {} }[step.op]
          await post(step.op === 'done' || step.op === 'fail' ? 'bob' : 'alice', step.op, body)
          known.endedAt ??= known.now
        }
      }
      await agree()
    }

    async function agree (): Promise<void> {
      const state = goOn(known)
      const read = await asks.asked(place)
      if (read.outcome !== 'found') throw new Error(read.outcome)
      const { record, now } = read
      const { ask } = record.extra
      const given = { token: 'x', id: ask?.id ?? 'x', as: [], satisfied: '', note: 'null', answer: Buffer.from('{}') }
      const { outcome } = await asks.answer(place, { agent: 'nobody' }, given)
      const told = ask === undefined ? 'none' : askAt(ask, record, now)
      const seen = [refusals[outcome], told, isResting(record, now) ? 'open' : told]
      if (seen.some(one => one !== state)) throw new Error(`${now - start}: it is ${state}, but answer.lua (${outcome}), askAt and isResting say ${seen.join(', ')}`)
      if (known.endedAt === null && deadlineOf(record) !== endOf(known)) throw new Error(`${now - start}: it ends at ${deadlineOf(record) - start}, not ${endOf(known) - start}`)
      met.add(state)
    }
  }), { numRuns: isWhole ? 1000 : 60 })
  t.strictSame([...met].sort(), ['answered', 'expired', 'none', 'open', 'withdrawn'], 'each state occurred')
})
