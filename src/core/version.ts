import { readFileSync } from 'node:fs'

/** Of the service and its command, as package.json has it, which lies beside src/ and dist/ alike. */
export const {
  version
} = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
