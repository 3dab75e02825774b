// The keywords that only describe: their own values are checked, but they don't constrain outputs.

/** @typedef {import('./assertions.mjs').Keyword} Keyword */

const dialect = 'https://json-schema.org/draft/2020-12/schema'

/** @type {Keyword} */
function text (given, reader) {
  return typeof given === 'string' ? undefined : reader.refuse('must be a string')
}

/** @type {Record<string, Keyword>} */
export const annotations = {
  $schema: (given, reader) => given === dialect ? undefined : reader.refuse(`must be ${dialect}`),
  title: text,
  description: text,
  format: text,
  default: () => undefined,
  examples: (given, reader) => Array.isArray(given) ? undefined : reader.refuse('must be an array'),
}
