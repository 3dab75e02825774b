import type { Source } from './sources.ts'

/**
 * From the ground up; a file imports from its own floor and those below. lua/ is below them all, and no module. The metrics read what all
 * floors under them have counted, which know nothing of them: so they stand above, and app.ts alone has them.
 */
const floors = ['redis', 'store', 'auth', 'result-schema', 'handoff', 'http', 'web', 'metrics', 'app.ts', 'main.ts', 'cli']

/** OpenTelemetry is there where somebody wants it: nobody needs it but who is loaded for it. */
const isTracing = (path: string) => path === 'tracing.ts' || path.startsWith('tracing/')

/** What anyone may import, and what imports nothing but its like. */
const leaves = (path: string) => ['errors.ts', 'redis-url.ts', 'histogram.ts', 'durations.ts', 'version.ts', 'model.ts'].includes(path) || path.startsWith('schemas/')

/** The only ones that read the environment. bootstrap.mjs runs before there is a config, and hands npm its own settings on. */
const readers = ['config.ts', 'bootstrap.mjs']

/** Of a Redis key: a part between colons, or a hash tag that is filled in. */
const keyPart = /:(h|w|s|k|r|ready):|:(due|sweeper|barrier|keys)\b|:\{\$\{\}\}/

/** Where src/ breaks the rules of the house (docs/architecture.md, "The rooms"): a sentence for each. */
export function structureFaults (sources: readonly Source[]): string[] {
  const faults: string[] = []
  for (const source of sources) {
    const { path } = source
    if (placeOf(path) === undefined) faults.push(`${path} has no place in the house: give it one here`)
    if (source.lines > 250) faults.push(`${path} has ${source.lines} lines: 250 at the most`)
    if (source.readsEnvironment && !readers.includes(path)) faults.push(`${path} reads the environment: that is config.ts's alone`)
    if (path !== 'store/key-names.ts' && source.texts.some(text => keyPart.test(text))) faults.push(`${path} builds a Redis key: that is store/key-names.ts's alone`)
    if (['redis', 'store', 'auth', 'result-schema', 'handoff'].includes(placeOf(path)!) && source.packages.some(name => /fastify/.test(name))) faults.push(`${path} imports fastify: it has to serve others than HTTP too`)
    if (source.packages.some(name => name.startsWith('@opentelemetry/')) && !isTracing(path)) faults.push(`${path} imports OpenTelemetry, which may not be installed`)
    for (const { of, typeOnly } of source.imports) {
      if (!mayImport(path, of, typeOnly)) faults.push(`${path} must not import ${of}`)
      if (!sources.some(other => other.path === of)) faults.push(`${path} imports ${of}, which isn't in src/`)
    }
  }
  return [...faults, ...cycles(sources).map(cycle => `a cycle: ${cycle.join(' -> ')}`)]
}

/** A floor, or one of those beside the stairs. */
function placeOf (path: string): string | undefined {
  if (leaves(path)) return 'leaf'
  const [top, inside] = path.split('/')
  const places = inside === undefined
    ? ['app.ts', 'main.ts', 'config.ts', 'bootstrap.mjs', 'log.ts']
    : ['redis', 'store', 'auth', 'result-schema', 'handoff', 'http', 'web', 'metrics', 'embedded', 'cli']
  if (isTracing(path)) return 'tracing'
  return places.includes(top!) ? top : undefined
}

function mayImport (from: string, of: string, typeOnly: boolean): boolean {
  const [here, there] = [placeOf(from), placeOf(of)]
  if (here === undefined || there === undefined) return false
  // Before there is anything installed or built it has only itself, and nobody has it.
  if (here === 'bootstrap.mjs' || there === 'bootstrap.mjs') return false
  // A preload: nobody of the service knows of it. It looks at what passes by, by the types of what it sees.
  if (there === 'tracing') return here === 'tracing'
  if (here === 'tracing') return typeOnly
  // pino, as it is set up here: for who runs the process.
  if (there === 'log.ts') return here === 'main.ts'
  if (here === 'log.ts') return false
  // The schemas stand on the two others, and those on nothing.
  if (here === 'leaf') return there === 'leaf' && from.startsWith('schemas/')
  // A house of its own: it knows nothing of the service, leaves included, and only main brings it up, and the command finds it.
  if (here === 'embedded' || there === 'embedded') return here === there || here === 'main.ts' || here === 'cli'
  // It knows Redis, and no handoff.
  if (here === 'redis' && of === 'model.ts') return false
  if (there === 'leaf') return true
  // What strangers wrote is read there, by itself.
  if (here === 'result-schema') return here === there
  if (here === 'config.ts') return false
  // Beside the service, and not of it: it speaks to Redis and to its own service from without.
  if (here === 'cli') return !['http', 'web', 'app.ts'].includes(there)
  if (there === 'config.ts') return here === 'main.ts' || here === 'app.ts' || typeOnly
  return floors.indexOf(there) <= floors.indexOf(here)
}

/** Circles of imports, each told once, from its first file on. */
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
