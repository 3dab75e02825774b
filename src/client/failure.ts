import type { Failure } from './types.ts'

/** Characters that the service takes as a failure's message, and as its code. */
const longestMessage = 4000
const takenAsCode = /^[A-Za-z0-9._-]{1,64}$/

/** What is told of something thrown. It may be anything, also what throws when it is looked at. */
export function failureOf (error: unknown): Exclude<Failure, string> {
  try {
    return readFailure(error)
  } catch {
    return { message: 'The handler failed.' }
  }
}

function readFailure (error: unknown): Exclude<Failure, string> {
  const { message, code, name } = (error ?? {}) as { message?: unknown, code?: unknown, name?: unknown }
  const text = typeof message === 'string' ? message || String(name) : String(error)
  return {
    // Cut by code points, as the service counts them.
    message: [...text.slice(0, 2 * longestMessage)].slice(0, longestMessage).join('') || 'The handler failed.',
    ...typeof code === 'string' && takenAsCode.test(code) && { code },
  }
}
