import t from 'tap'
import { parseSource, readSources } from './helpers/sources.ts'
import type { Source } from './helpers/sources.ts'
import { structureFaults } from './helpers/structure.ts'

const sources = readSources()

t.strictSame(structureFaults(sources), [])

t.test('the checker has read all of src/', async t => {
  const paths = sources.map(({ path }) => path)
  for (const path of ['main.ts', 'app.ts', 'config.ts', 'bootstrap.mjs', 'http/routes/handoffs.ts', 'handoffs/service.ts', 'redis/lane.ts', 'auth/keys.ts', 'core/model.ts', 'embedded/server.ts', 'client/index.ts']) {
    t.ok(paths.includes(path), path)
  }
  const app = sources.find(({ path }) => path === 'app.ts')!
  t.ok(app.imports.some(({ of, typeOnly }) => of === 'config.ts' && typeOnly))
  t.ok(app.imports.some(({ of, typeOnly }) => of === 'http/auth.ts' && !typeOnly))
})

/** The real sources, with one file added or replaced. */
function withFile (path: string, text: string): Source[] {
  return [...sources.filter(source => source.path !== path), parseSource(path, text)]
}

const allowed: Array<[path: string, text: string]> = [
  ['handoffs/new.ts', "import { Handoffs } from '../store/handoffs.ts'\nimport { problem } from '../core/schemas/problem.ts'"],
  ['result-schema/new.ts', "import { Problem } from '../core/errors.ts'\nimport { Thread } from './thread.ts'"],
  ['mcp/new.ts', "import { operationsOf } from '../http/operations.ts'\nimport { HandoffService } from '../handoffs/service.ts'"],
  ['cli/new.ts', "await import('../main.ts')\nimport { loadConfig } from '../config.ts'\nimport { findRunning } from '../embedded/server.ts'\nimport { openStore } from '../store/store.ts'"],
  ['tracing/new.ts', "import { trace } from '@opentelemetry/api'\nimport type { ScriptCall } from '../redis/call.ts'"],
  ['store/new.ts', "// process.env is not for us\nexport const id = process.pid + '/docs:whole' + `$" + '{process.pid}:x`'],
]

const breaches: Array<[path: string, text: string, fault: RegExp]> = [
  ['redis/new.ts', "import { KeyNames } from '../store/keys.ts'", /^redis\/new.ts must not import store\/keys.ts/],
  ['redis/new.ts', "import type { HandoffRecord } from '../core/model.ts'", /^redis\/new.ts must not import core\/model.ts/],
  ['auth/new.ts', "import type { FastifyRequest } from 'fastify'", /auth\/new.ts imports fastify/],
  ['result-schema/new.ts', "import { Lane } from '../redis/lane.ts'", /^result-schema\/new.ts must not import redis\/lane.ts/],
  ['handoffs/new.ts', "import type { FastifyReply } from 'fastify'", /handoffs\/new.ts imports fastify/],
  ['store/new.ts', "import { iso } from '../handoffs/answers.ts'", /^store\/new.ts must not import handoffs\/answers.ts/],
  ['store/new.ts', "export { useAuth } from '../http/auth.ts'", /must not import http\/auth.ts/],
  ['handoffs/new.ts', "let it: import('../http/auth.ts').Auth", /must not import http\/auth.ts/],
  ['http/new.ts', 'const it = await import(name)', /must not import \(name\)/],
  ['http/new.ts', "const it = require('../main.ts')", /must not import main.ts/],
  ['core/errors.ts', "import { Lane } from '../redis/lane.ts'", /core\/errors.ts must not import redis\/lane.ts/],
  ['app.ts', "import { startEmbedded } from './embedded/start.ts'", /must not import embedded\/start.ts/],
  ['embedded/new.ts', "import { Problem } from '../core/errors.ts'", /embedded\/new.ts must not import core\/errors.ts/],
  ['http/new.ts', "import { loadConfig } from '../config.ts'", /must not import config.ts/],
  ['store/new.ts', "import type { Level } from '../cli/doctor/server.ts'", /must not import cli\/doctor\/server.ts/],
  ['cli/new.ts', "import { buildApp } from '../app.ts'", /must not import app.ts/],
  ['client/new.ts', "import { errorTable } from '../core/errors.ts'", /^client\/new.ts must not import core\/errors.ts/],
  ['client/new.ts', "import { randomUUID } from 'node:crypto'", /client\/new.ts imports node:crypto/],
  ['http/new.ts', "import { rawJson } from '../client/index.ts'", /must not import client\/index.ts/],
  ['main.ts', "import { bootstrap } from './bootstrap.mjs'", /main.ts must not import bootstrap.mjs/],
  ['bootstrap.mjs', "import './core/errors.ts'", /bootstrap.mjs must not import core\/errors.ts/],
  ['main.ts', "import '../test/helpers/app.ts'", /main.ts must not import ..\/test\/helpers\/app.ts/],
  ['main.ts', "import './http/nowhere.ts'", /isn't in src/],
  ['util/new.ts', '', /util\/new.ts has no place/],

  ['main.ts', "import './tracing.ts'", /main.ts must not import tracing.ts/],
  ['http/new.ts', "import type { Span } from '@opentelemetry/api'", /imports OpenTelemetry/],

  ['embedded/new.ts', 'const { PATH } = process.env', /reads the environment/],
  ['http/new.ts', "const env = process['env']", /reads the environment/],
  ['http/new.ts', 'const { env } = process', /reads the environment/],
  ['store/new.ts', "import { env } from 'node:process'", /reads the environment/],

  ['store/new.ts', 'export const key = (prefix, member) => `$' + '{prefix}:h:$' + '{member}`', /builds a Redis key/],
  ['http/new.ts', "export const key = (partition) => partition + ':due'", /builds a Redis key/],
  ['store/new.ts', 'export const key = (prefix, tag) => `$' + '{prefix}:{$' + '{tag}}`', /builds a Redis key/],
  ['store/new.ts', '\n'.repeat(400) + 'export {}', /401 lines/],

  ['store/keys.ts', "import './handoffs.ts'", /a cycle: .*store\/keys.ts -> store\/handoffs.ts/],
]

t.test('the checker accepts what is allowed', async t => {
  for (const [path, text] of allowed) t.strictSame(structureFaults(withFile(path, text)), [], `${path}: ${text}`)
})

t.test('the checker finds each breach', async t => {
  for (const [path, text, fault] of breaches) {
    const faults = structureFaults(withFile(path, text))
    t.ok(faults.some(sentence => fault.test(sentence)), `${path}: ${text.trim()}`, { faults, fault: String(fault) })
  }
})
