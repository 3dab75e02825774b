import type { Source } from './sources.ts'

/**
 * The layers, lowest first. A file imports from its own layer and lower ones. lua/ is below them all, and no module. The metrics read the
 * counts of all layers below, which don't know them; so they are above, and only app.ts imports them.
 */
const floors = ['redis', 'store', 'auth', 'result-schema', 'files', 'handoffs', 'webhooks', 'operations', 'http', 'web', 'mcp', 'a2a', 'metrics', 'app.ts', 'main.ts', 'cli']

/** OpenTelemetry is optional: only the tracing preload may import it. */
const isTracing = (path: string) => path === 'tracing.ts' || path.startsWith('tracing/')

/** What the service and the command in the client's package both know. It is written there, since the package goes out without the service. */
const isCommon = (path: string) => path.startsWith('clients/typescript/command/common/')

/** Leaves: any file may import them, and they import only one another. */
const leaves = (path: string) => path.startsWith('core/') || isCommon(path)

/** The only files that read the environment. bootstrap.mjs runs before the config exists, and passes npm's own settings on. */
const readers = ['clients/typescript/command/environment.ts', 'config.ts', 'bootstrap.mjs']

/** Made by a program, as long as it may be. */
const generated = 'clients/typescript/api.ts'

/** The one place that tests a caller's scopes, and where a caller is made of a key's record, or of a token's claims. */
const scopeReaders = ['auth/scopes.ts', 'auth/known-key.ts', 'auth/token-rules.ts']
/** Where a caller comes by. Outside there are only keys' records. */
const knowCallers = ['auth', 'files', 'handoffs', 'webhooks', 'operations', 'http', 'web', 'mcp', 'a2a', 'metrics', 'app.ts']

/** The one place that makes calls of operations, and the one that needs its `toCall`: a request's checks were made by hooks. */
const callMaker = 'operations/admit.ts'
const requests = 'http/operations.ts'
/** Where a call comes by. */
const knowCalls = ['operations', 'http', 'web', 'mcp', 'a2a', 'app.ts']
/** What a call has, and nothing else has together. */
const ofCalls = ['members', 'requester', 'waiting']

/** A call, or a changed copy of one. */
const isCall = (members: readonly string[]) => ofCalls.every(name => members.includes(name)) || (members.length > 1 && members.includes('...call'))

/** What is used from outside src/: a package's names, and what a test loads from a copy. */
const entries = ['clients/typescript/index.ts', 'bootstrap.mjs']

/** How many names of src/ only test/ and bench/ may use. The number may only go down: a test goes through what the service uses. */
const forTestsAlone = 48

/** How many names may be defined at the top level of two files or more. The number may only go down: one name means one thing. */
const namesOfMany = 352

/** The one place of the pages that carries out operations. What else they call of the services reads; their views call none. */
const formPerformer = 'web/perform.ts'
const ofServices = /^(activities|approvals|asks|attempts|forPeople|graphs|handoffs|histories|inboxes|inboxSettings|lists|operate|operation|webhooks)\./
const reads = ['activities.look', 'approvals.count', 'approvals.inspect', 'approvals.list', 'approvals.read', 'asks.find', 'graphs.around', 'histories.attempts',
  'histories.history', 'histories.inspect', 'inboxSettings.count', 'inboxSettings.groups', 'inboxSettings.list', 'lists.pageAt', 'webhooks.list', 'forPeople.list', 'forPeople.watch', 'forPeople.watchOne']

/** A part of a Redis key: between colons, or a hash tag that is filled in. */
const keyPart = /:(h|w|s|k|r|ready):|:(due|sweeper|barrier|keys)\b|:\{\$\{\}\}/

/** How src/ breaks its rules (docs/architecture.md, "The folders"): a sentence for each breach. */
export function structureFaults (sources: readonly Source[]): string[] {
  const faults: string[] = []
  for (const source of sources) {
    const { path } = source
    if (placeOf(path) === undefined) faults.push(`${path} has no place in the house: give it one here`)
    if (source.lines > 400 && path !== generated) faults.push(`${path} has ${source.lines} lines: the limit is 400`)
    if (source.readsEnvironment && !readers.includes(path)) faults.push(`${path} reads the environment: that is config.ts's alone`)
    if (source.literals.some(isCall) && knowCalls.includes(placeOf(path)!) && path !== callMaker) faults.push(`${path} makes a call of an operation: that is ${callMaker}'s alone`)
    if (source.imports.some(({ names }) => names.includes('toCall')) && path !== requests) faults.push(`${path} imports toCall, which checks nothing: Admission lets calls in`)
    const unadmitted = source.calls.find(call => ofServices.test(call) && !reads.includes(call))
    if (/^web\/(?!views\/)/.test(path) && path !== formPerformer && unadmitted !== undefined) {
      faults.push(`${path} calls ${unadmitted}, which no call is admitted to: a form carries out an operation, by ${formPerformer}`)
    }
    if (source.readsScopes && knowCallers.includes(placeOf(path)!) && !scopeReaders.includes(path)) faults.push(`${path} tests scopes: that is auth/scopes.ts's alone`)
    if (path !== 'store/key-names.ts' && source.texts.some(text => keyPart.test(text))) faults.push(`${path} builds a Redis key: that is store/key-names.ts's alone`)
    if (['redis', 'store', 'auth', 'result-schema', 'files', 'handoffs', 'webhooks', 'operations'].includes(placeOf(path)!) && source.packages.some(name => /fastify/.test(name))) faults.push(`${path} imports fastify: it has to serve others than HTTP too`)
    const foreign = source.packages.find(name => !name.startsWith('node:'))
    if (path.startsWith('clients/typescript/command/') && foreign !== undefined) faults.push(`${path} imports ${foreign}: the client's package has no dependencies`)
    if (placeOf(path) === 'client' && source.packages.length > 0) faults.push(`${path} imports ${source.packages[0]}: the client has no dependencies, Node's built-ins included`)
    if (source.packages.some(name => name.startsWith('@opentelemetry/')) && !isTracing(path)) faults.push(`${path} imports OpenTelemetry, which may not be installed`)
    for (const { of, typeOnly } of source.imports) {
      if (!mayImport(path, of, typeOnly)) faults.push(`${path} must not import ${of}`)
      if (!sources.some(other => other.path === of)) faults.push(`${path} imports ${of}, which isn't in src/`)
    }
  }
  return [...faults, ...cycles(sources).map(cycle => `a cycle: ${cycle.join(' -> ')}`)]
}

/**
 * Which exported names no other file uses, and whether more names than allowed are for tests alone or defined in several files.
 * @param users the files of test/ and bench/
 */
export function nameFaults (sources: readonly Source[], users: readonly Source[]): string[] {
  const [used, tested] = [sources, users].map(files => new Set(files.flatMap(({ imports }) => imports.flatMap(({ of, names }) => names.map(name => `${of} ${name}`)))))
  const exported = sources.filter(({ path }) => !entries.includes(path)).flatMap(({ path, exports }) => exports.map(name => ({ path, name })))
  const isIn = (uses: Set<string>, path: string, name: string) => uses.has(`${path} ${name}`) || uses.has(`${path} *`)
  const unused = exported.filter(({ path, name }) => !isIn(used!, path, name))
  const nobodys = unused.filter(({ path, name }) => !isIn(tested!, path, name))
  const forTests = unused.length - nobodys.length
  const many = Object.entries(definers(sources)).filter(([, paths]) => paths.length > 1)
  return [
    ...nobodys.map(({ path, name }) => `${path} exports ${name}, which no other file uses`),
    ...overLimit(forTests, forTestsAlone, 'exported names that only tests use', unused.filter(one => !nobodys.includes(one)).map(({ path, name }) => `${name} of ${path}`)),
    ...overLimit(many.length, namesOfMany, 'names defined in two files or more', many.map(([name, paths]) => `${name} in ${paths.join(', ')}`)),
  ]
}

function overLimit (count: number, limit: number, what: string, list: readonly string[]): string[] {
  if (count === limit) return []
  const way = count < limit ? `make it the limit in ${import.meta.url.split('/').at(-1)}` : list.join('; ')
  return [`there are ${count} ${what}, and the limit is ${limit}: ${way}`]
}

/** The files that define each name. What is generated isn't ours to name. */
function definers (sources: readonly Source[]): Record<string, string[]> {
  const found: Record<string, string[]> = Object.create(null)
  for (const { path, defines } of sources) {
    if (path !== generated) for (const name of new Set(defines)) (found[name] ??= []).push(path)
  }
  return found
}

/** The layer of a file, or one of the parts beside the layers. */
function placeOf (path: string): string | undefined {
  if (leaves(path)) return 'leaf'
  const [top, inside] = path.split('/')
  const places = inside === undefined
    ? ['app.ts', 'main.ts', 'config.ts', 'bootstrap.mjs', 'log.ts']
    : ['redis', 'store', 'auth', 'result-schema', 'files', 'handoffs', 'webhooks', 'operations', 'http', 'web', 'mcp', 'a2a', 'metrics', 'embedded', 'clients', 'cli']
  if (isTracing(path)) return 'tracing'
  if (path.startsWith('clients/typescript/')) return path.startsWith('clients/typescript/command/') ? 'command' : 'client'
  return places.includes(top!) ? top : undefined
}

function mayImport (from: string, of: string, typeOnly: boolean): boolean {
  const [here, there] = [placeOf(from), placeOf(of)]
  if (here === undefined || there === undefined) return false
  // It runs before anything is installed or built, so it imports nothing of ours, and nothing imports it.
  if (here === 'bootstrap.mjs' || there === 'bootstrap.mjs') return false
  // A preload: the service doesn't import it. It imports only the types of what it observes, and looks up its collector as webhooks' names are.
  if (there === 'tracing') return here === 'tracing'
  if (here === 'tracing') return typeOnly || ['core/lookups.ts', 'core/round.ts', 'core/stdio.ts'].includes(of)
  // pino's setup, for the entry points of the process.
  if (there === 'log.ts') return here === 'main.ts'
  if (here === 'log.ts') return of === 'core/stdio.ts'
  // What goes out with the client imports nothing of the service's, and core nothing but leaves.
  if (isCommon(from)) return isCommon(of)
  if (here === 'leaf') return there === 'leaf'
  // Independent: it imports nothing of the service, leaves included. Only main starts it, and only the command looks for it.
  if (here === 'embedded' || there === 'embedded') return here === there || here === 'main.ts' || here === 'cli'
  // Programs of the build: they make the packages that the service hands out, and the clients' types, from the schemas of the operations.
  if (here === 'clients') return there === 'clients' || there === 'operations' || there === 'leaf'
  if (there === 'clients') return false
  // A package of its own, which knows nothing of the service. Of its two parts the library doesn't know the command. The service's command has both.
  if (here === 'client') return there === 'client'
  if (here === 'command') return there === 'client' || there === 'command' || isCommon(of)
  if (there === 'client' || there === 'command') return here === 'cli'
  // It knows Redis, and no handoffs.
  if (here === 'redis' && of === 'core/model.ts') return false
  if (there === 'leaf') return true
  // It alone parses strangers' schemas and outputs, isolated from the rest.
  if (here === 'result-schema') return here === there
  if (here === 'config.ts') return false
  // Not part of the service: it talks to Redis and to the service from outside.
  if (here === 'cli') return !['operations', 'http', 'web', 'mcp', 'a2a', 'app.ts'].includes(there)
  if (there === 'config.ts') return here === 'main.ts' || here === 'app.ts' || typeOnly
  return floors.indexOf(there) <= floors.indexOf(here)
}

/** Import cycles, each reported once, starting with its first file. */
function cycles (sources: readonly Source[]): string[][] {
  const found: string[][] = []
  const finished = new Set<string>()
  const follow = (path: string, trail: string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) found.push([...trail.slice(start), path])
    if (start >= 0 || finished.has(path)) return
    for (const { of } of sources.find(source => source.path === path)?.imports ?? []) follow(of, [...trail, path])
    finished.add(path)
  }
  for (const { path } of sources) follow(path, [])
  return found
}
