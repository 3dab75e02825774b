import { auth } from './mutants/auth.ts'
import { clients } from './mutants/clients.ts'
import { handoffs } from './mutants/handoffs.ts'
import { http } from './mutants/http.ts'
import { handoffScripts } from './mutants/lua-handoffs.ts'
import { scriptLibraries } from './mutants/lua-lib.ts'
import { otherScripts } from './mutants/lua-others.ts'
import { operations } from './mutants/operations.ts'
import { redis } from './mutants/redis.ts'
import { store } from './mutants/store.ts'
import { web } from './mutants/web.ts'
import { webhooks } from './mutants/webhooks.ts'

/** One change, from a text that its file has once, to another one. With a reason no quick test needs to notice it. */
export type Change = readonly [from: string, to: string, reason?: string]

/** A file with its changes, and the quick tests that are to notice each: those that notice most and take least come first. */
export interface Mutated { file: string, tests: readonly string[], changes: readonly Change[] }

/** Each a defect that a hasty change could bring. No two of them are made at once. */
export const mutated: readonly Mutated[] = [
  ...handoffScripts, ...scriptLibraries, ...otherScripts, ...redis, ...store, ...auth, ...handoffs, ...webhooks, ...operations, ...http, ...web, ...clients
]
