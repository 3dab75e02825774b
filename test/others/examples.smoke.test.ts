import type { Model } from '@openai/agents'
import { MockLanguageModelV3 } from 'ai/test'
import t from 'tap'
import type { Test } from 'tap'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { until } from '../helpers/until.ts'
import { listen } from '../helpers/wire.ts'
import { review, write } from './examples/ai-sdk.ts'
import { pay } from './examples/asking.ts'
import * as openai from './examples/openai-agents.ts'

/** The examples run as they are, on models that say what a test tells them. */

type Reply = { tool: string, input: object } | { text: string }
type Heard = string

/** What the writer says: hands over, waits for the outcome of what it handed over, and repeats that. */
function writerSays (heard: Heard): Reply {
  const id = /[A-Za-z0-9_-]{25}/.exec(heard)?.[0]
  if (id === undefined) return { tool: 'hand_over', input: { to: 'reviewer', task: 'Review this.', draft: 'A first draft.' } }
  return heard.includes('done') ? { text: `The reviewer says: ${/"review":"([^"]+)"|\\"review\\":\\"([^"\\]+)/.exec(heard)?.slice(1).join('')}` } : { tool: 'outcome', input: { id } }
}

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } }

function aiModel (say: (heard: Heard) => Reply): MockLanguageModelV3 {
  let calls = 0
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const reply = say(JSON.stringify(prompt))
      return 'text' in reply
        ? { content: [{ type: 'text', text: reply.text }], finishReason: { unified: 'stop', raw: undefined }, usage, warnings: [] }
        : { content: [{ type: 'tool-call', toolCallId: `call-${++calls}`, toolName: reply.tool, input: JSON.stringify(reply.input) }], finishReason: { unified: 'tool-calls', raw: undefined }, usage, warnings: [] }
    },
  })
}

function openaiModel (say: (heard: Heard) => Reply): Model {
  let calls = 0
  return {
    async getResponse ({ input }: { input: unknown }) {
      const reply = say(JSON.stringify(input))
      const output = 'text' in reply
        ? { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: reply.text }] }
        : { type: 'function_call', callId: `call-${++calls}`, name: reply.tool, status: 'completed', arguments: JSON.stringify(reply.input) }
      return { usage: { requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 }, output: [output] }
    },
    async * getStreamedResponse () {},
  } as unknown as Model
}

async function clients (t: Test): Promise<Record<'writer' | 'reviewer' | 'person', HandoffClient>> {
  const { app } = await testApp(t)
  const baseUrl = `http://127.0.0.1:${await listen(app)}`
  const client = (key: string) => new HandoffClient({ baseUrl, key })
  return { writer: client(secrets.alice), reviewer: client(secrets.bob), person: client(secrets.approver) }
}

/** A person approves the first handoff that waits. */
async function approve (person: HandoffClient): Promise<void> {
  const waiting = async () => (await person.approvals.list()).items
  await until(async () => (await waiting()).length > 0)
  const [first] = await waiting()
  await person.approvals.approve(first!.handoff_id, { note: 'Go on.' })
}

for (const [name, start] of [
  ['the AI SDK', (client: HandoffClient) => write(client, aiModel(writerSays), 'Write something and have it reviewed.')],
  ['the OpenAI Agents SDK', (client: HandoffClient) => openai.write(client, openaiModel(writerSays), 'Write something and have it reviewed.')],
] as const) {
  t.test(`a writer on ${name} passes to a reviewer, and a person approves in between`, async t => {
    const { writer, reviewer, person } = await clients(t)
    const over = new AbortController()
    const heard: string[] = []
    const reviewing = review(reviewer, aiModel(text => {
      heard.push(text)
      return { text: 'Good as it is.' }
    }), over.signal)
    const [answer] = await Promise.all([start(writer), approve(person)])
    t.equal(answer, 'The reviewer says: Good as it is.')
    t.equal(heard.length, 1, 'reviewed once')
    t.match(heard[0], 'A first draft.')
    over.abort()
    await reviewing
  })
}

t.test('a worker asks a person about a large invoice, and goes on with the answer', async t => {
  const { writer, reviewer, person } = await clients(t)
  const over = new AbortController()
  const paying = pay(reviewer, 'payer', 100, over.signal)
  const passed = async (amount: number) => (await writer.pass({ to: 'payer', task: 'Pay it.', output: { invoice: `I-${amount}`, amount } })).handoff_id
  const results = async (ids: string[]) => Promise.all(ids.map(async id => (await writer.waitFor(id, 'done')).result))
  const ids = [await passed(1000), await passed(2000), await passed(20)]
  for (const answer of [{ pay: true, account: 'the reserve' }, { pay: false }]) {
    const open = async () => (await person.asks({ inbox: 'payer' })).items
    await until(async () => (await open()).length > 0)
    const { handoff_id: id, ask_id: askId, question } = (await open())[0]!
    t.match(question, /^Invoice I-[12]000 is about [12]000\. Pay it, and from which account\?$/)
    await t.rejects(person.answer(id, askId, { pay: 'yes' }), { code: 'result_invalid' }, 'only what the schema allows')
    await person.answer(id, askId, answer)
    await until(async () => (await open()).every(({ ask_id: next }) => next !== askId))
  }
  t.strictSame(await results(ids), [{ paid: 1000, from: 'the reserve' }, { paid: 0 }, { paid: 20, from: 'the usual account' }])
  over.abort()
  await paying
})
