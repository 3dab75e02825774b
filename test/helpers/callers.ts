import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import { outcome } from './exchanges.ts'
import type { Exchange } from './exchanges.ts'
import { withoutTap } from './processes.ts'
import { findPython, pythonRoot } from './python.ts'

/** Both, in seconds. */
export interface Patience { retryFor: number, attemptTimeout: number }

/** One of the clients, in whatever language. */
export interface Caller {
  /** What the call returns, or its error in the words of exchanges.json. */
  call (exchange: Pick<Exchange, 'typescript' | 'python'>): Promise<unknown>
  close (): Promise<unknown>
  /** How many connections it may have after that: those of fetch are the runtime's, which opens another where one request follows another at once. */
  keeps: number
}

export type Open = (url: string, key: string, patience: Patience) => Promise<Caller>

export interface Callers {
  /** By the client's name. Those of Python are missing where there is none. */
  opens: Record<string, Open>
  /** Ends them. @returns what they said by themselves, such as warnings of what wasn't closed */
  end (): Promise<string>
}

export function callers (t: Test): Callers {
  const python = findPython()
  if (python === undefined) return { opens: { TypeScript: openTypeScript }, end: async () => '' }
  const { opens, end } = inPython(t, python)
  return { opens: { TypeScript: openTypeScript, ...opens }, end }
}

const openTypeScript: Open = async (baseUrl, key, { retryFor, attemptTimeout }) => {
  const client = new HandoffClient({ baseUrl, key, retryFor: retryFor * 1000, attemptTimeout: attemptTimeout * 1000 })
  return { call: ({ typescript }) => outcome(client, typescript), close: async () => {}, keeps: 2 }
}

function inPython (t: Test, python: string): Callers {
  const child = spawn(python, ['-W', 'always::ResourceWarning', '-m', 'tests.calls'], {
    cwd: pythonRoot, stdio: ['pipe', 'pipe', 'pipe'], env: { ...withoutTap(), PYTHONDONTWRITEBYTECODE: '1' },
  })
  const said = text(child.stderr)
  t.teardown(() => child.kill())
  let count = 0
  const waiting = new Map<number, (value: unknown) => void>()
  createInterface(child.stdout).on('line', line => {
    const { n, value } = JSON.parse(line)
    waiting.get(n)!(value)
    waiting.delete(n)
  })
  const ask = async (what: object): Promise<[n: number, value: unknown]> => {
    const n = ++count
    const answer = new Promise(resolve => waiting.set(n, resolve))
    child.stdin.write(JSON.stringify({ n, ...what }) + '\n')
    return [n, await answer]
  }
  const opening = (open: string): Open => async (url, key, { retryFor, attemptTimeout }) => {
    const [of] = await ask({ open, url, key, options: { retry_for: retryFor, attempt_timeout: attemptTimeout } })
    return {
      call: async ({ python: call }) => (await ask({ of, call }))[1],
      close: async () => (await ask({ close: of }))[1],
      keeps: 0,
    }
  }
  return {
    opens: { Python: opening('Client'), asyncio: opening('AsyncClient') },
    async end () {
      child.stdin.end()
      await once(child, 'exit')
      return await said
    },
  }
}
