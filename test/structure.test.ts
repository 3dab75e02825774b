import t from 'tap'
import { parseSource, readSources } from './helpers/sources.ts'
import type { Source } from './helpers/sources.ts'
import { structureFaults } from './helpers/structure.ts'

const sources = readSources()

t.strictSame(structureFaults(sources), [])

t.test('the checker has read all of src/', async t => {
  const paths = sources.map(({ path }) => path)
  for (const path of ['main.ts', 'app.ts', 'config.ts', 'bootstrap.mjs', 'http/routes/pass.ts', 'handoff/service.ts', 'redis/lane.ts', 'auth/api-keys.ts', 'model.ts', 'embedded/server.ts', 'client/index.ts']) {
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
  ['store/new.ts', "import { statusAt } from '../model.ts'\nimport { Problem } from '../errors.ts'\nimport { Lane } from '../redis/lane.ts'"],
  ['handoff/new.ts', "import { Handoffs } from '../store/handoffs.ts'\nimport { problem } from '../schemas/problem.ts'"],
  ['handoff/new.ts', "import { ResultSchemas } from '../result-schema/result-schemas.ts'"],
  ['result-schema/new.ts', "import { Problem } from '../errors.ts'\nimport { Thread } from './thread.ts'"],
  ['http/routes/new.ts', "import { Unavailable } from '../../redis/lane.ts'\nimport type { Config } from '../../config.ts'\nimport fastify from 'fastify'"],
  ['mcp/new.ts', "import { operationsOf } from '../http/operations.ts'\nimport { HandoffService } from '../handoff/service.ts'"],
  ['cli/new.ts', "await import('../main.ts')\nimport { loadConfig } from '../config.ts'\nimport { findRunning } from '../embedded/running.ts'\nimport { openStore } from '../store/store.ts'"],
  ['schemas/new.ts', "import { statuses } from '../model.ts'\nimport { problem } from './problem.ts'"],
  ['tracing/new.ts', "import { trace } from '@opentelemetry/api'\nimport type { ScriptCall } from '../redis/script-calls.ts'"],
  ['main.ts', "import { openLog } from './log.ts'"],
  ['client/new.ts', "import { HandoffError } from './errors.ts'"],
  ['cli/new.ts', "import { HandoffClient } from '../client/index.ts'"],
  ['store/new.ts', "// process.env is not for us\nexport const id = process.pid + '/docs:whole' + `$" + '{process.pid}:x`'],
]

const breaches: Array<[path: string, text: string, fault: RegExp]> = [
  ['redis/new.ts', "import { KeyNames } from '../store/key-names.ts'", /^redis\/new.ts must not import store\/key-names.ts/],
  ['redis/new.ts', "import type { HandoffRecord } from '../model.ts'", /^redis\/new.ts must not import model.ts/],
  ['store/new.ts', "import { ApiKeys } from '../auth/api-keys.ts'", /must not import auth\/api-keys.ts/],
  ['auth/new.ts', "import type { FastifyRequest } from 'fastify'", /auth\/new.ts imports fastify/],
  ['result-schema/new.ts', "import { Lane } from '../redis/lane.ts'", /^result-schema\/new.ts must not import redis\/lane.ts/],
  ['result-schema/new.ts', "import type { Config } from '../config.ts'", /must not import config.ts/],
  ['auth/new.ts', "import { ResultSchemas } from '../result-schema/result-schemas.ts'", /must not import result-schema\/result-schemas.ts/],
  ['handoff/new.ts', "import type { FastifyReply } from 'fastify'", /handoff\/new.ts imports fastify/],
  ['store/new.ts', "import { tagOf } from '../handoff/id.ts'", /^store\/new.ts must not import handoff\/id.ts/],
  ['store/new.ts', "import type { HandoffService } from '../handoff/service.ts'", /must not import handoff\/service.ts/],
  ['store/new.ts', "export { useAuth } from '../http/auth.ts'", /must not import http\/auth.ts/],
  ['handoff/new.ts', "import '../http/auth.ts'", /must not import http\/auth.ts/],
  ['handoff/new.ts', "const later = await import('../app.ts')", /must not import app.ts/],
  ['handoff/new.ts', "let it: import('../http/auth.ts').Auth", /must not import http\/auth.ts/],
  ['http/new.ts', "import { buildApp } from '../app.ts'", /must not import app.ts/],
  ['http/new.ts', 'const it = await import(name)', /must not import \(name\)/],
  ['http/new.ts', "const it = require('../main.ts')", /must not import main.ts/],
  ['store/new.ts', "import { makeRegistry } from '../metrics/registry.ts'", /must not import metrics\/registry.ts/],
  ['http/new.ts', "import type { Families } from '../metrics/families.ts'", /must not import metrics\/families.ts/],
  ['http/new.ts', "import { toolsOf } from '../mcp/tools.ts'", /must not import mcp\/tools.ts/],
  ['histogram.ts', "import { Lane } from './redis/lane.ts'", /histogram.ts must not import redis\/lane.ts/],
  ['app.ts', "import './main.ts'", /must not import main.ts/],
  ['errors.ts', "import { Lane } from './redis/lane.ts'", /errors.ts must not import redis\/lane.ts/],
  ['errors.ts', "import { statuses } from './model.ts'", /errors.ts must not import model.ts/],
  ['schemas/new.ts', "import { isId } from '../handoff/id.ts'", /must not import handoff\/id.ts/],
  ['model.ts', "import { Problem } from './errors.ts'", /must not import errors.ts/],
  ['app.ts', "import { startEmbedded } from './embedded/start.ts'", /must not import embedded\/start.ts/],
  ['store/new.ts', "import type { Embedded } from '../embedded/start.ts'", /must not import embedded\/start.ts/],
  ['embedded/new.ts', "import { Problem } from '../errors.ts'", /embedded\/new.ts must not import errors.ts/],
  ['embedded/new.ts', "import { connect } from '../redis/connect.ts'", /must not import redis\/connect.ts/],
  ['http/new.ts', "import { loadConfig } from '../config.ts'", /must not import config.ts/],
  ['http/new.ts', "import { loadConfig, type Config } from '../config.ts'", /must not import config.ts/],
  ['config.ts', "import { Lane } from './redis/lane.ts'", /config.ts must not import redis\/lane.ts/],
  ['main.ts', "import './cli/keys.ts'", /main.ts must not import cli\/keys.ts/],
  ['store/new.ts', "import type { Level } from '../cli/doctor/finding.ts'", /must not import cli\/doctor\/finding.ts/],
  ['cli/new.ts', "import { buildApp } from '../app.ts'", /must not import app.ts/],
  ['cli/new.ts', "import { iso } from '../http/problem.ts'", /must not import http\/problem.ts/],
  ['client/new.ts', "import { errorTable } from '../errors.ts'", /^client\/new.ts must not import errors.ts/],
  ['client/new.ts', "import { randomUUID } from 'node:crypto'", /client\/new.ts imports node:crypto/],
  ['http/new.ts', "import { rawJson } from '../client/index.ts'", /must not import client\/index.ts/],
  ['embedded/new.ts', "import { rawJson } from '../client/index.ts'", /must not import client\/index.ts/],
  ['main.ts', "import { bootstrap } from './bootstrap.mjs'", /main.ts must not import bootstrap.mjs/],
  ['bootstrap.mjs', "import './errors.ts'", /bootstrap.mjs must not import errors.ts/],
  ['main.ts', "import '../test/helpers/app.ts'", /main.ts must not import ..\/test\/helpers\/app.ts/],
  ['main.ts', "import './http/nowhere.ts'", /isn't in src/],
  ['util/new.ts', '', /util\/new.ts has no place/],
  ['helpers.ts', '', /helpers.ts has no place/],

  ['http/new.ts', "import { openLog } from '../log.ts'", /must not import log.ts/],
  ['log.ts', "import { loadConfig } from './config.ts'", /log.ts must not import config.ts/],
  ['main.ts', "import './tracing.ts'", /main.ts must not import tracing.ts/],
  ['http/new.ts', "import { Requests } from '../tracing/requests.ts'", /must not import tracing\/requests.ts/],
  ['tracing/new.ts', "import { traceparentOf } from '../http/traceparent.ts'", /must not import http\/traceparent.ts/],
  ['http/new.ts', "import type { Span } from '@opentelemetry/api'", /imports OpenTelemetry/],
  ['main.ts', "await import('@opentelemetry/sdk-trace-node')", /imports OpenTelemetry/],

  ['embedded/new.ts', 'const { PATH } = process.env', /reads the environment/],
  ['http/new.ts', "const env = process['env']", /reads the environment/],
  ['http/new.ts', 'const { env } = process', /reads the environment/],
  ['store/new.ts', "import { env } from 'node:process'", /reads the environment/],

  ['store/new.ts', 'export const key = (prefix, member) => `$' + '{prefix}:h:$' + '{member}`', /builds a Redis key/],
  ['http/new.ts', "export const key = (partition) => partition + ':due'", /builds a Redis key/],
  ['store/new.ts', 'export const key = (prefix, tag) => `$' + '{prefix}:{$' + '{tag}}`', /builds a Redis key/],
  ['store/new.ts', '\n'.repeat(250) + 'export {}', /251 lines/],

  ['store/key-names.ts', "import './handoffs.ts'", /a cycle: .*store\/key-names.ts -> store\/handoffs.ts/],
  ['store/new.ts', "import './new.ts'", /a cycle: store\/new.ts -> store\/new.ts/],
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
