/** What Node, Deno and Bun have; browsers and some edge runtimes have none. */
interface RuntimeProcess {
  pid?: number
  env?: Record<string, string | undefined>
  getBuiltinModule?: <Name extends keyof BuiltinModules>(name: Name) => BuiltinModules[Name] | undefined
}

/** The part of Node's built-ins that the client uses where they are. Nothing imports them: browsers have none. */
interface BuiltinModules {
  'node:os': { hostname: () => string }
  'node:fs': {
    statSync: (path: string, options: { bigint: true }) => Record<'dev' | 'ino' | 'mtimeNs' | 'size', bigint>
    readFileSync: (path: string, encoding: 'utf8') => string
    openAsBlob: (path: string | URL) => Promise<Blob>
    promises: {
      stat: (path: string | URL) => Promise<{ isFile: () => boolean }>
      open: (path: string, flags: 'w') => Promise<WritableFile>
      rename: (from: string, to: string) => Promise<void>
      rm: (path: string, options: { force: true }) => Promise<void>
    }
  }
  'node:crypto': { createHash: (algorithm: 'sha256') => RunningHash }
  'node:path': {
    basename: (path: string) => string
    dirname: (path: string) => string
    join: (...parts: string[]) => string
  }
}

interface WritableFile {
  write: (bytes: Uint8Array, offset: number) => Promise<{ bytesWritten: number }>
  close: () => Promise<void>
}

interface RunningHash { update: (bytes: Uint8Array) => unknown, digest: (encoding: 'hex') => string }

/** What finds, reads, writes and digests files. */
export type FileBuiltins = BuiltinModules['node:fs'] & BuiltinModules['node:crypto'] & BuiltinModules['node:path']

function runtimeProcess (): RuntimeProcess {
  return (globalThis as { process?: RuntimeProcess }).process ?? {}
}

/** An environment variable, if there is an environment. An empty one counts as unset. */
export function fromEnvironment (name: 'HANDOFF_URL' | 'HANDOFF_KEY' | 'HANDOFF_KEY_FILE'): string | undefined {
  return runtimeProcess().env?.[name] || undefined
}

/** One of Node's built-ins; undefined where the runtime has none. */
export function builtinModule<Name extends keyof BuiltinModules> (name: Name): BuiltinModules[Name] | undefined {
  return runtimeProcess().getBuiltinModule?.(name)
}

/** How long a worker's name may be. */
const maxWorkerName = 100

/**
 * The name of this process among an agent's workers: what HANDOFF_WORKER says, else its host and its number.
 * @returns undefined where that is empty, or not known
 */
export function ownWorkerName (): string | undefined {
  const { env, pid } = runtimeProcess()
  const said = env?.HANDOFF_WORKER
  if (said !== undefined) return workerName(said, '')
  const host = hostName()
  return host === undefined || pid === undefined ? undefined : workerName(host, `:${pid}`)
}

/** Deno asks for a permission, and throws without it. */
function hostName (): string | undefined {
  try { return builtinModule('node:os')?.hostname() } catch { return undefined }
}

/** In characters that the service takes. */
function workerName (name: string, end: string): string | undefined {
  return `${name.replace(/[^A-Za-z0-9._:@/-]/g, '-').slice(0, maxWorkerName - end.length)}${end}` || undefined
}
