import { HandoffError } from './errors.ts'
import { builtinModule, fromEnvironment } from './runtime.ts'

/** A key or a token, or a function that gives one. The function is called for each request. */
export type KeySource = string | (() => string | Promise<string>)

export interface KeyOptions {
  /**
   * The API key, a token of an issuer that the service takes, or a function that gives one of these. By default what
   * `keyFile`, HANDOFF_KEY or HANDOFF_KEY_FILE says, the first of these that is there. Without any, no key is sent: for
   * a server of one's own that adds it.
   */
  key?: KeySource | undefined
  /** The path of a file with the key. It is read again when it has changed. */
  keyFile?: string | undefined
}

/** What stands in the header field Authorization of a client's requests. */
export interface Authorization {
  /** @throws {HandoffError} key_unavailable */
  read (): Promise<string | undefined>
  /** Gets the key anew, because it was refused. Left out where that would be the same one. */
  renew?: () => Promise<string>
}

/** @throws TypeError for what can't be a key, and for a file that can't be read */
export function authorizationOf ({ key, keyFile }: KeyOptions): Authorization {
  if (key !== undefined && keyFile !== undefined) throw new TypeError('key and keyFile are given: one of them must do')
  if (typeof key === 'function') return renewable(key, 'the function that gives the key failed')
  const fixed = key ?? (keyFile === undefined ? fromEnvironment('HANDOFF_KEY') : undefined)
  if (fixed !== undefined) {
    const authorization = bearer(fixed)
    return { read: async () => authorization }
  }
  const path = keyFile ?? fromEnvironment('HANDOFF_KEY_FILE')
  if (path === undefined) return { read: async () => undefined }
  const read = fileReader(path)
  try {
    bearer(read(false))
  } catch (error) {
    throw new TypeError(`the key’s file ${path} can’t be used: ${(error as Error).message}`)
  }
  return renewable(read, `the key’s file ${path} can’t be used`, true)
}

/**
 * @param get gets whether the key that it gave last was refused
 * @param wasThere whether it gave one before: then what goes wrong now may pass
 */
function renewable (
  get: (isRefused: boolean) => string | Promise<string>, fault: string, wasThere = false
): Authorization {
  const read = async (isRefused: boolean) => {
    try {
      const authorization = bearer(await get(isRefused))
      wasThere = true
      return authorization
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause)
      throw new HandoffError('key_unavailable', { detail: `No key: ${fault}: ${message}.`, retryable: wasThere, cause })
    }
  }
  return { read: () => read(false), renew: () => read(true) }
}

function bearer (key: string): string {
  if (typeof key !== 'string' || !/^[!-~]+$/.test(key)) {
    throw new TypeError(key === '' ? 'a key must not be empty' : 'a key must have only visible ASCII characters')
  }
  return `Bearer ${key}`
}

/**
 * Reads a file when it has changed. Kubernetes replaces a token by another target of a link, so what is looked at is
 * the target. It is looked at before it is read: one that changes in between is read once more.
 */
function fileReader (path: string): (isRefused: boolean) => string {
  const files = builtinModule('node:fs')
  if (files === undefined) {
    throw new TypeError('this runtime reads no files (keyFile, HANDOFF_KEY_FILE): give key a function')
  }
  let [state, key] = ['', '']
  return isRefused => {
    const { dev, ino, mtimeNs, size } = files.statSync(path, { bigint: true })
    const now = `${dev} ${ino} ${mtimeNs} ${size}`
    if (isRefused || now !== state) {
      key = files.readFileSync(path, 'utf8').trim()
      state = now
    }
    return key
  }
}
