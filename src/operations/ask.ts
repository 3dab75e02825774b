import {
  answerBody, answeredAnswer, askAnswer, askBody, askedAnswer, asksAnswer, asksQuery
} from '../core/schemas/asks.ts'
import type { AnswerBody, AskBody, AsksQuery } from '../core/schemas/asks.ts'
import {
  catcherHeaders, handoffParams, ignoredKeyHeaders, noQuery, waitQuery
} from '../core/schemas/handoffs.ts'
import { id, key, labelsOf, optionalOffset, seconds } from './arguments.ts'
import { operation, refusedBy, stays, unmoved } from './operation.ts'
import type { OperationCall, OperationOutcome, Services } from './operation.ts'

/** Questions in the middle of the work, to a person or to the passer. */

export function ask ({ asks, limits }: Services) {
  const run = async (call: OperationCall<AskBody>): Promise<OperationOutcome> => {
    const { caller, id, body, members } = call
    const { answer, replayed } = await asks.ask(caller, id, body, members, call)
    return { status: 201, answer, replayed, moved: stays }
  }
  return operation<AskBody>({
    name: 'ask',
    scope: 'catch',
    method: 'POST',
    path: '/api/ask/:id',
    tag: 'questions',
    summary: 'Ask a person, or the passer, while working',
    description: 'Only the agent that caught the handoff may do so, one question at a time. Until the answer, or ' +
      'until expires_in is over, the deadlines of the work are paused and no heartbeat is needed.',
    params: handoffParams,
    query: noQuery,
    headers: catcherHeaders,
    body: askBody(limits),
    answers: { 201: askAnswer },
    refusals: [...refusedBy('ask'), 'result_schema_too_slow'],
    tool: {
      name: 'handoff_ask',
      title: 'Ask a person, or who passed the work',
      description: 'Ask about a handoff that you caught, if you can’t go on without an answer: a person by default, ' +
        'or the agent that passed it with of "passer". Give a schema if the answer must have a form. With wait the ' +
        'call waits for the answer; without one yet (state open), look again with handoff_asked. Meanwhile your ' +
        'deadlines are paused. If state is expired or withdrawn, nobody will answer: decide yourself, fail or decline.',
      takes: { id, ...seconds('for the answer'), ...key },
      async run (call) {
        const outcome = await run(call as OperationCall<AskBody>)
        if (call.waiting === null) return outcome
        return { ...outcome, answer: await asks.read(call.caller, call.id, call.requester, call.waiting) }
      }
    },
    run,
  })
}

export function asked ({ asks }: Services) {
  return operation({
    name: 'asked',
    scope: ['catch', 'approve', 'pass'],
    method: 'GET',
    path: '/api/ask/:id',
    tag: 'questions',
    summary: 'Read a handoff’s latest question and its answer',
    description: 'For its catcher, for people who answer, and for the passer if the passer is asked. wait= waits ' +
      'until the question is no longer open.',
    params: handoffParams,
    query: waitQuery,
    answers: { 200: askedAnswer },
    refusals: ['not_addressee', 'not_asked', 'not_the_catcher'],
    tool: {
      name: 'handoff_asked',
      title: 'Read a question and its answer',
      description: 'See the latest question of a handoff that you caught, or that you passed and are asked about, ' +
        'and its answer. With wait the call waits until it is answered, or over.',
      takes: { id, ...seconds('for the answer'), offset: optionalOffset },
      hints: { readOnlyHint: true }
    },
    async run ({ caller, id, requester, waiting }) {
      return unmoved(await asks.read(caller, id, requester, waiting))
    },
  })
}

const answering = {
  method: 'POST',
  tag: 'questions',
  summary: 'Answer a question',
  params: handoffParams,
  query: noQuery,
  headers: ignoredKeyHeaders,
  body: answerBody,
  answers: { 200: answeredAnswer },
} as const

export function answer ({ asks, decisions }: Services) {
  return operation<AnswerBody>({
    ...answering,
    name: 'answer',
    scope: ['approve', 'pass'],
    path: '/api/answer/:id',
    description: 'The answer is final. What a person is asked needs the scope approve, and isn’t answered by the ' +
      'agent that asks; what the passer is asked needs the scope pass, and only the passer answers. The same answer ' +
      'again changes nothing.',
    refusals: [...refusedBy('answer'), 'result_invalid', 'result_schema_too_slow'],
    async run ({ caller, id, body, members }) {
      const answered = await asks.answer(caller, id, body, members)
      decisions.made(caller)
      return { status: 200, ...answered, moved: stays }
    },
  })
}

/** As a tool it answers only questions to the passer: people answer theirs on the page. */
export function answerAsPasser ({ asks }: Services) {
  return operation<AnswerBody>({
    ...answering,
    name: 'answerAsPasser',
    scope: 'pass',
    path: null,
    tool: {
      name: 'handoff_answer',
      title: 'Answer a question about work that you passed',
      description: 'Answer what the catcher of a handoff that you passed asks you. Read the question with ' +
        'handoff_asked first: answer needs its ask_id, and must satisfy its schema. The answer is final. Questions ' +
        'to people are answered by people alone.',
      takes: { id, ...key },
      hints: { idempotentHint: true }
    },
    async run ({ caller, id, body, members }) {
      return { status: 200, ...await asks.answer(caller, id, body, members, ['passer']), moved: stays }
    },
  })
}

export function listAsks ({ asks }: Services) {
  return operation<unknown, AsksQuery>({
    name: 'listAsks',
    scope: ['approve', 'pass'],
    method: 'GET',
    path: '/api/asks',
    tag: 'questions',
    summary: 'List the open questions',
    description: 'The oldest first. What people are asked, of the whole tenant, with the scope approve; with ' +
      'of=passer and the scope pass, what this agent is asked as the passer. Go on until next_cursor is null: before ' +
      'that, a page may have fewer items than `limit`, or none.',
    query: asksQuery,
    answers: { 200: asksAnswer },
    async run ({ caller, query, requester }) {
      const { of, inbox, cursor, limit = 20 } = query
      const answer = await asks.listText(caller, { of, inbox, labels: labelsOf(query) }, cursor, limit, requester)
      return unmoved(answer)
    },
  })
}
