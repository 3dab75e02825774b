import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import openapiTS, { astToString } from 'openapi-typescript'
import t from 'tap'
import type { Test } from 'tap'
import ts from 'typescript'
import { secrets, testApp } from '../helpers/app.ts'
import { projectRoot } from '../helpers/service.ts'
import { listen } from '../helpers/wire.ts'

/** A user's program with the types that openapi-typescript generates from /openapi.json, and openapi-fetch as the client. */
const program = `
import createClient from 'openapi-fetch'
import type { paths } from './types.js'

export async function run (baseUrl: string, key: string, approverKey: string) {
  const as = (secret: string) => createClient<paths>({ baseUrl, headers: { authorization: 'Bearer ' + secret } })
  const [agent, approver] = [as(key), as(approverKey)]
  const passed = await agent.POST('/api/pass', {
    body: { task: 'Count', output: { rows: 128, nested: { list: [1, 'two', null] } }, context: { ticket: 'OPS-7' }, constraints: null, require_human: true, expires_in: 60 },
    headers: { 'idempotency-key': 'generated-1' } as never,
  })
  if (passed.data === undefined) throw new Error(passed.error.detail)
  const id: string = passed.data.handoff_id
  const params = { path: { id } }
  const refused = await agent.GET('/api/catch/{id}', { params })
  const code: string | undefined = refused.error?.code
  const listed = await approver.GET('/api/approvals', { params: { query: { limit: 5 } } })
  await approver.POST('/api/approve/{id}', { params, body: { note: 'Go ahead.' } })
  const caught = await agent.GET('/api/catch/{id}', { params: { ...params, query: { wait: 1 } } })
  const output: { [name: string]: unknown } | undefined = caught.data?.output
  const done = await agent.POST('/api/done/{id}', { params, body: { output: { counted: 128 } } })
  const { data: status } = await agent.GET('/api/status/{id}', { params: { ...params, query: { wait: 1, until: 'done' } } })
  const result: { [name: string]: unknown } | null | undefined = status?.result
  return { code, listed: listed.data?.items.map(item => item.handoff_id), id, output, done: done.data?.status, result, approval: status?.approval?.state }
}
`

/** Each has one fault that the compiler must find: types that accept everything would be worthless. */
const wrong: Record<string, string> = {
  'a task that is no text': "await agent.POST('/api/pass', { body: { task: 5 } })",
  'no task': "await agent.POST('/api/pass', { body: {} })",
  'an output that is no object': "await agent.POST('/api/pass', { body: { task: 't', output: 'text' } })",
  'an unknown query parameter': "await agent.GET('/api/status/{id}', { params: { path: { id: 'x' }, query: { until: 'never' } } })",
  'a path that isn’t there': "await agent.GET('/api/nowhere')",
}

/** A folder in which packages resolve as in a user's project. */
async function projectFolder (t: Test, app: FastifyInstance): Promise<string> {
  const cache = join(projectRoot, 'test/others/.cache')
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'generated-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const document = (await app.inject('/openapi.json')).json()
  await writeFile(join(folder, 'types.ts'), astToString(await openapiTS(document)))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  return folder
}

/** Compiles under `strict`. @returns the compiler's errors for each file */
function compile (files: string[]): string[][] {
  const compiled = ts.createProgram(files, {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    types: [],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  })
  compiled.emit()
  const faults = ts.getPreEmitDiagnostics(compiled)
  return files.map(name => faults.filter(({ file }) => file?.fileName === name).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')))
}

t.test('a generated client carries a handoff with its output, and refuses what the contract forbids', async t => {
  const { app } = await testApp(t)
  const folder = await projectFolder(t, app)
  const right = join(folder, 'program.ts')
  await writeFile(right, program)
  const start = program.slice(0, program.indexOf('export async'))
  const files = Object.entries(wrong).map(([name, statement], index) => ({ name, file: join(folder, `wrong-${index}.ts`), statement }))
  for (const { file, statement } of files) {
    await writeFile(file, `${start}const agent = createClient<paths>({ baseUrl: '' })\nexport async function run () { ${statement} }\n`)
  }
  const [ofRight, ...ofWrong] = compile([right, ...files.map(({ file }) => file)])
  t.strictSame(ofRight, [], 'compiles')
  for (const [index, { name }] of files.entries()) t.equal(ofWrong[index]!.length, 1, `${name} doesn’t compile`)

  const { run } = await import(pathToFileURL(right.replace(/ts$/, 'js')).href)
  const seen = await run(`http://127.0.0.1:${await listen(app)}`, secrets.alice, secrets.approver)
  t.strictSame(seen, {
    code: 'approval_required',
    listed: [seen.id],
    id: seen.id,
    output: { rows: 128, nested: { list: [1, 'two', null] } },
    done: 'done',
    result: { counted: 128 },
    approval: 'approved',
  })
})
