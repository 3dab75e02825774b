import { Type } from '@sinclair/typebox'
import { filePatterns, longest, maxFiles } from '../files.ts'
import type { GivenFile } from '../files.ts'
import { exampleFile, nullable } from './parts.ts'

/** The schemas of files. */

/** In a body. The service checks besides what a schema can't say (faultsInFiles). */
export const givenFiles = Type.Optional(nullable<GivenFile[]>('array', {
  items: Type.Object({
    name: Type.String({
      pattern: filePatterns.name,
      maxLength: longest.name,
      description: 'Its name: 1 to 255 bytes of UTF-8, each name once; no path.'
    }),
    uri: Type.String({
      pattern: filePatterns.uri,
      maxLength: longest.uri,
      description: 'An https URL, which the service never fetches, or handoff-file: and the id of an upload.'
    }),
    media_type: Type.Optional(nullable<string>('string', {
      pattern: filePatterns.type, maxLength: longest.type, description: 'Its media type, without parameters.'
    })),
    bytes: Type.Optional(nullable<number>('integer', {
      minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'How many bytes it has.'
    })),
    sha256: Type.Optional(nullable<string>('string', {
      pattern: filePatterns.sha256, description: 'Its SHA-256, in hexadecimal digits.'
    })),
  }, { additionalProperties: false, description: 'A file.' }),
  minItems: 1,
  maxItems: maxFiles,
  description: 'What is too large for a body: each file’s name and place, and what it must be.',
  examples: [[exampleFile]]
}))

/** Beside an answer's files: where each can be fetched with no key. */
export const fileUrls = (of: string) => Type.Optional(Type.Array(
  nullable<{ url: string, expires_at: string }>('object', {
    properties: {
      url: Type.String({ description: 'Where it can be fetched without a key.' }),
      expires_at: Type.String({ format: 'date-time', description: 'Until when.' }),
    },
    required: ['url', 'expires_at']
  }),
  { description: `For each of ${of}: its URL for now; null for a link, which is its own.`, examples: [[null]] }
))
