import t from 'tap'
import { parseSource, readSources } from './helpers/sources.ts'
import type { Source } from './helpers/sources.ts'
import { nameFaults, structureFaults } from './helpers/structure.ts'

const sources = readSources()
const users = [...readSources('test'), ...readSources('bench')]

t.strictSame(structureFaults(sources), [])
t.strictSame(nameFaults(sources, users), [])

t.test('the checker has read all of src/', async t => {
  const paths = sources.map(({ path }) => path)
  for (const path of ['main.ts', 'app.ts', 'config.ts', 'bootstrap.mjs', 'operations/table.ts', 'handoffs/lifecycle/service.ts', 'redis/lane.ts', 'auth/key-ring.ts', 'core/model.ts', 'embedded/server.ts', 'clients/typescript/index.ts']) {
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

/** One for each kind of rule. */
const breaches: Array<[path: string, text: string, fault: RegExp]> = [
  ['redis/new.ts', "import { KeyNames } from '../store/key-names.ts'", /^redis\/new.ts must not import store\/key-names.ts/],
  ['redis/new.ts', "import type { HandoffRecord } from '../core/model.ts'", /^redis\/new.ts must not import core\/model.ts/],
  ['handoffs/new.ts', "import type { FastifyReply } from 'fastify'", /handoffs\/new.ts imports fastify/],
  ['http/new.ts', 'const it = await import(name)', /must not import \(name\)/],
  ['clients/typescript/new.ts', "import { randomUUID } from 'node:crypto'", /clients\/typescript\/new.ts imports node:crypto/],
  ['clients/typescript/new.ts', "import { print } from './command/output.ts'", /^clients\/typescript\/new.ts must not import clients\/typescript\/command\/output.ts/],
  ['clients/typescript/command/new.ts', "import { Command } from 'commander'", /command\/new.ts imports commander/],
  ['clients/typescript/command/new.ts', "import { labelsMember } from '../../../core/labels.ts'", /^clients\/typescript\/command\/new.ts must not import core\/labels.ts/],
  ['clients/typescript/command/common/new.ts', "import { labelsMember } from '../../../../core/labels.ts'", /common\/new.ts must not import core\/labels.ts/],
  ['http/new.ts', "import { print } from '../clients/typescript/command/output.ts'", /^http\/new.ts must not import clients\/typescript\/command\/output.ts/],
  ['clients/new.ts', "import { HandoffError } from './typescript/errors.ts'", /^clients\/new.ts must not import clients\/typescript\/errors.ts/],
  ['main.ts', "import './http/nowhere.ts'", /isn't in src/],
  ['util/new.ts', '', /util\/new.ts has no place/],
  ['http/new.ts', "import type { Span } from '@opentelemetry/api'", /imports OpenTelemetry/],
  ['http/new.ts', 'const { env } = process', /reads the environment/],
  ['store/new.ts', 'export const key = (prefix, member) => `$' + '{prefix}:h:$' + '{member}`', /builds a Redis key/],
  ['web/new.ts', 'export const call = (caller, requester, members) => ({ caller, id: "", query: {}, body: members.values, members, bytes, requester, waiting: null })', /^web\/new.ts makes a call/],
  ['http/new.ts', 'export const later = (call, caller) => ({ ...call, caller })', /^http\/new.ts makes a call/],
  ['mcp/new.ts', "import { toCall } from '../operations/admit.ts'", /^mcp\/new.ts imports toCall/],
  ['web/new.ts', "import { toCall as make } from '../operations/admit.ts'", /^web\/new.ts imports toCall/],
  ['web/new.ts', 'export const approve = (services, caller, id) => services.approvals.decide(caller, "approved", id, note, {})', /^web\/new.ts calls approvals.decide/],
  ['web/new.ts', 'export const redrive = ({ operate }, caller, ids) => operate.redriveThese(caller, ids)', /^web\/new.ts calls operate.redriveThese/],
  ['web/new.ts', 'export const skip = (operation, call) => operation.run(call)', /^web\/new.ts calls operation.run/],
  ['handoffs/new.ts', "export const may = (caller) => caller.scopes.has('operate')", /^handoffs\/new.ts tests scopes/],
  ['web/new.ts', "export const may = ({ scopes: all }) => all.has('operate')", /^web\/new.ts tests scopes/],
  ['http/new.ts', "export const may = (request) => request.caller['scopes'].size > 1", /^http\/new.ts tests scopes/],
  ['core/new.ts', 'export const unheard = 1', /^core\/new.ts exports unheard, which no other file uses/],
  ['core/new.ts', 'export class Unheard {}; const use = () => new Unheard()', /^core\/new.ts exports Unheard,/],
  ['core/new.ts', "export type { LogLine } from './stdio.ts'", /^core\/new.ts exports LogLine,/],
  ['core/new.ts', 'const [first, { second: unheard }] = list; export { unheard }', /^core\/new.ts exports unheard,/],
  ['core/new.ts', 'const root = 1, overloaded = 2, AppDependencies = 3', /^there are \d+ names defined in two files or more, and the limit is \d+: .*overloaded in http\/overload.ts, core\/new.ts/],
  ['core/lookups.ts', 'export {}', /^there are \d+ exported names that only tests use, and the limit is \d+: make it the limit/],
  ['store/new.ts', '\n'.repeat(400) + 'export {}', /401 lines/],
  ['store/key-names.ts', "import './handoffs.ts'", /a cycle: .*store\/key-names.ts -> store\/handoffs.ts/],
]

t.test('the checker finds each breach', async t => {
  for (const [path, text, fault] of breaches) {
    const changed = withFile(path, text)
    const faults = [...structureFaults(changed), ...nameFaults(changed, users)]
    t.ok(faults.some(sentence => fault.test(sentence)), `${path}: ${text.trim()}`, { faults, fault: String(fault) })
  }
})
