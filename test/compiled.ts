import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where a run of the tests has src/, test/ and bench/ compiled (compile.ts). */
export const compiled = fileURLToPath(new URL('../.cache/compiled', import.meta.url))

/** Where the compiled file of one in test/ is. @param path below test/ */
export function compiledTest (path: string): string {
  return join(compiled, 'test', path.replace(/\.ts$/, '.js'))
}
