import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import type { Model } from '@openai/agents'
import { Usage, setTracingDisabled } from '@openai/agents'
import { MockLanguageModelV3 } from 'ai/test'
import t from 'tap'
import type { Test } from 'tap'
import type { HandoffClient } from '../../src/clients/typescript/index.ts'
import { tenants } from '../helpers/client.ts'
import type { Tenant } from '../helpers/client.ts'
import { readPage } from '../helpers/pages.ts'
import { findPython, pythonRoot } from '../helpers/python.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'
import { messagesApi } from './messages-api.ts'

/** The recipes of docs/agents.md as they are there, on models that say what a test tells them. */

const tenant = await tenants(t)
// It would send traces to its makers.
setTracingDisabled(true)

const of = (heading: string, language: string) => readPage('docs/agents.md').blocks.filter(block => block.heading === heading && block.language === language).map(block => block.text)[0]!
const typed = readPage('docs/agents.md').blocks.filter(({ language }) => language === 'ts').map(({ heading }) => heading)
/** A project that has the packages of this folder, and in it one that has Claude's, which are too big to be here: .ci/run brings them. */
const folder = await mkdtemp(join(projectRoot, '.cache/recipes-'))
t.teardown(() => rm(folder, { recursive: true, force: true }))
const claude = join(projectRoot, '.cache/claude/node_modules')
const withoutClaude = existsSync(join(claude, '@anthropic-ai/claude-agent-sdk')) ? false : 'no Claude Agent SDK is in .cache/claude'
for (const [project, packages] of [[folder, join(projectRoot, 'test/others/node_modules')], [join(folder, 'claude'), claude]] as const) {
  await mkdir(project, { recursive: true })
  await symlink(packages, join(project, 'node_modules'))
  await writeFile(join(project, 'package.json'), '{"type":"module"}')
}
const fileOf = (heading: string) => join(folder, heading.startsWith('Claude') ? 'claude/write.ts' : `${heading.toLowerCase().replaceAll(' ', '-')}.ts`)
for (const heading of typed) await writeFile(fileOf(heading), of(heading, 'ts').replace("'agent-handoff-client'", "'../../src/clients/typescript/index.ts'"))
const recipe = (heading: string): Promise<Record<string, any>> => import(fileOf(heading))

type Reply = { tool: string, input: object } | { text: string }

/** What the writer says: hands over, and repeats what became of it. */
function writerSays (heard: string): Reply {
  const [, review] = /review\\*":\s*\\*"([^"\\]+)/.exec(heard) ?? []
  if (review !== undefined) return { text: `The reviewer says: ${review}` }
  return { tool: 'hand_over', input: { to: 'reviewer', task: 'Review this.', draft: 'A first draft.' } }
}

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } }

function aiModel (say: (heard: string) => Reply): MockLanguageModelV3 {
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

function openaiModel (say: (heard: string) => Reply): Model {
  let calls = 0
  return {
    async getResponse ({ input }: { input: unknown }) {
      const reply = say(JSON.stringify(input))
      const output = 'text' in reply
        ? { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: reply.text }] }
        : { type: 'function_call', callId: `call-${++calls}`, name: reply.tool, status: 'completed', arguments: JSON.stringify(reply.input) }
      return { usage: new Usage(), output: [output] }
    },
    async * getStreamedResponse () {},
  } as unknown as Model
}

/** A person approves the first handoff that waits. */
async function approve (person: HandoffClient): Promise<void> {
  const waiting = async () => (await person.approvals.list()).items
  await until(async () => (await waiting()).length > 0)
  const [first] = await waiting()
  await person.approvals.approve(first!.handoff_id, { note: 'Go on.' })
}

/** A writer hands its draft over, a person approves, and the AI SDK's reviewer reviews it, once. */
async function isReviewed (t: Test, { client }: Tenant, start: () => Promise<string>): Promise<void> {
  const over = new AbortController()
  t.teardown(() => over.abort())
  const heard: string[] = []
  const { review } = await recipe('AI SDK')
  const reviewing = review(client('bob'), aiModel(said => {
    heard.push(said)
    return { text: 'Good as it is.' }
  }), over.signal)
  const [answer] = await Promise.all([start(), approve(client('approver'))])
  t.equal(answer, 'The reviewer says: Good as it is.')
  t.equal(heard.length, 1, 'reviewed once')
  t.match(heard[0], 'A first draft.')
  over.abort()
  await reviewing
}

const prompt = 'Write something and have it reviewed.'

t.test('they compile', async t => {
  const options = { extends: '../../test/tsconfig.json', compilerOptions: { typeRoots: ['../../node_modules/@types'] }, include: ['*.ts', ...withoutClaude === false ? ['claude/*.ts'] : []] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(options))
  const { stdout } = await promisify(execFile)(process.execPath, [join(projectRoot, 'node_modules/typescript/bin/tsc'), '-p', folder]).catch(error => error)
  t.equal(stdout, '')
  t.equal(typed.length, 4)
})

t.test('AI SDK', async t => {
  const service = tenant()
  const { write } = await recipe('AI SDK')
  await isReviewed(t, service, () => write(service.client('alice'), aiModel(writerSays), prompt))
})

t.test('OpenAI Agents SDK', async t => {
  const service = tenant()
  const { write } = await recipe('OpenAI Agents SDK')
  await isReviewed(t, service, () => write(service.client('alice'), openaiModel(writerSays), prompt))
})

t.test('Claude Agent SDK', { skip: withoutClaude }, async t => {
  const service = tenant()
  const { address, asked } = await messagesApi(t, heard => {
    const reply = writerSays(heard)
    if ('text' in reply) return reply
    const [id] = /(?<=handoff_id\\*":\s*\\*")[\w-]+/.exec(heard) ?? []
    return id === undefined
      ? { tool: 'mcp__handoff__handoff_pass', input: { task: 'Review this.', to: 'reviewer', output: { draft: 'A first draft.' }, require_human: true } }
      : { tool: 'mcp__handoff__handoff_wait', input: { ids: [id], wait: 50 } }
  })
  // In a process of its own, that knows nothing of the settings of whoever runs this.
  const env = { PATH: process.env.PATH, HOME: folder, CLAUDE_CONFIG_DIR: join(folder, 'claude'), ANTHROPIC_BASE_URL: address, ANTHROPIC_API_KEY: 'none', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', ...service.env('alice') }
  const program = `import { write } from ${JSON.stringify(fileOf('Claude Agent SDK'))}\nconsole.log(await write(${JSON.stringify(prompt)}))`
  await isReviewed(t, service, async () => {
    const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', program], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill())
    return (await text(child.stdout)).trim()
  })
  t.ok(asked.length >= 3, 'it asked the stand-in')
})

t.test('LangGraph', async t => {
  const { client } = tenant()
  const [writer, reviewer, person] = [client('alice'), client('bob'), client('approver')]
  const { pay } = await recipe('LangGraph')
  const over = new AbortController()
  t.teardown(() => over.abort())
  const paying = pay(reviewer, 'payer', 100, over.signal)
  const passed = async (amount: number | string) => (await writer.pass({ to: 'payer', task: 'Pay it.', output: { invoice: `I-${amount}`, amount } })).handoff_id
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
  t.strictSame((await writer.waitForAll(ids)).map(one => one.status === 'done' && one.result), [
    { invoice: 'I-1000', amount: 1000, account: 'the reserve' },
    { invoice: 'I-2000', amount: 0, account: 'the usual account' },
    { invoice: 'I-20', amount: 20, account: 'the usual account' },
  ])
  t.match(await writer.waitFor(await passed('much'), 'done'), { status: 'failed' }, 'what is no invoice fails')
  over.abort()
  await paying
})

const python = findPython()
const withoutPython = python === undefined ? 'no Python 3.10 or later is to be had' : false

/** Runs a recipe with stand-ins for the classes of its framework. @param program what runs it; it stands in `module` */
function inPython (t: Test, service: Tenant, heading: string, standIns: string, program: string) {
  const whole = `import sys, types\nmodule = types.ModuleType("recipe")\n${standIns}\nexec(compile(${JSON.stringify(of(heading, 'python'))}, "recipe", "exec"), module.__dict__)\n${program}`
  const env = { PATH: process.env.PATH, HOME: folder, PYTHONPATH: pythonRoot, PYTHONDONTWRITEBYTECODE: '1', ...service.env(heading === 'CrewAI' ? 'bob' : 'alice') }
  const child = spawn(python!, ['-c', whole], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  return { child, said: text(child.stdout) }
}

t.test('CrewAI', { skip: withoutPython }, async t => {
  const service = tenant()
  const writer = service.client('alice')
  const { child } = inPython(t, service, 'CrewAI', `
class Crew:
    def __init__(self, *, agents, tasks):
        assert tasks[0].agent is agents[0]
        self.tasks = tasks

    def kickoff(self, inputs):
        (task,) = self.tasks
        if inputs["task"] == "Raise.":
            raise RuntimeError("No material.")
        task.callback(types.SimpleNamespace(agent=task.agent.role))
        return types.SimpleNamespace(raw=task.description.format(**inputs))

crewai = sys.modules["crewai"] = types.ModuleType("crewai")
crewai.Agent, crewai.Task, crewai.Crew = types.SimpleNamespace, types.SimpleNamespace, Crew
`, 'module.client.run()')
  const passed = async (task: string) => (await writer.pass({ to: 'research', task, output: { rows: 128 } })).handoff_id
  const [done, failed] = await writer.waitForAll([await passed('Count.'), await passed('Raise.')])
  t.match(done, { status: 'done', result: { report: "Count.\n\nThe material:\n{'rows': 128}" }, progress: { message: 'Researcher is done' } })
  t.match(failed, { status: 'failed', error: { message: 'No material.' } })
  child.kill('SIGTERM')
  t.equal((await once(child, 'exit'))[0], 0)
})

t.test('Pydantic AI', { skip: withoutPython }, async t => {
  const service = tenant()
  await isReviewed(t, service, async () => {
    const { said } = inPython(t, service, 'Pydantic AI', `
class Agent:
    def __init__(self, model, *, deps_type, instructions):
        self.deps_type = deps_type

    def tool(self, function):
        self.hand_over = function
        return function

    async def run(self, prompt, *, deps):
        assert isinstance(deps, self.deps_type)
        # A call that is run again passes nothing twice.
        context = types.SimpleNamespace(deps=deps, tool_call_id="call-1")
        first, again = [await self.hand_over(context, "A first draft.") for _ in range(2)]
        assert first == again
        return types.SimpleNamespace(output=first)

class RunContext:
    def __class_getitem__(cls, of):
        return cls

pydantic_ai = sys.modules["pydantic_ai"] = types.ModuleType("pydantic_ai")
pydantic_ai.Agent, pydantic_ai.RunContext = Agent, RunContext
`, `import asyncio\nprint(asyncio.run(module.write(${JSON.stringify(prompt)})))`)
    const reply = writerSays(await said)
    return 'text' in reply ? reply.text : 'no review'
  })
})
