import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { filePatterns, longest } from '../files.ts'
import { exampleId, nullable, time } from './parts.ts'

/** The schemas of files that agents upload. */

/** What S3 takes in one put (bytes). */
export const largestFile = 5 * 2 ** 30

const exampleSha256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
const name = Type.String({ description: 'What it is called.', examples: ['report.pdf'] })
const bytes = Type.Integer({ description: 'How many bytes it has.', examples: [4] })
const sha256 = Type.String({ description: 'The SHA-256 of its bytes, in lower case.', examples: [exampleSha256] })
const fileId = Type.String({ description: 'The file’s id.', examples: [exampleId] })
const uploadEnds = time('When the upload must have begun.', '2026-11-20T10:00:00.000Z')

export const fileParams = Type.Object({ id: fileId })

export const fileBody = Type.Object({
  name: Type.String({
    description: 'What it is called: 1 to 255 bytes of UTF-8, without /, \\ and control characters; not . or ..',
    examples: ['report.pdf']
  }),
  bytes: Type.Integer({
    minimum: 0, maximum: largestFile, description: 'How many bytes it has, up to FILE_LIMIT.', examples: [4]
  }),
  sha256: Type.String({
    pattern: filePatterns.sha256, description: 'The SHA-256 of its bytes, in hex.', examples: [exampleSha256]
  }),
  media_type: Type.Optional(nullable<string>('string', {
    pattern: filePatterns.type, maxLength: longest.type, description: 'Its media type.', examples: ['application/pdf']
  })),
}, { additionalProperties: false })
export type FileBody = Static<typeof fileBody>

export const madeFile = Type.Object({
  file_id: fileId,
  uri: Type.String({ description: 'What names it in `files`.', examples: [`handoff-file:${exampleId}`] }),
  upload: Type.Object({
    method: Type.Literal('PUT'),
    url: Type.String({ description: 'Where its bytes go, without a key.', examples: ['https://example.com/files/…'] }),
    headers: Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'Header fields to send with them.',
      examples: [{ 'content-length': '4' }]
    }),
    expires_at: uploadEnds,
  }, { description: 'The request that uploads it.' }),
}, { description: 'There is room for the file; it is there once its bytes are.' })
export type MadeFile = Static<typeof madeFile>

export const fileAnswer = Type.Object({
  file_id: fileId,
  name,
  bytes,
  sha256,
  media_type: nullable<string>('string', { description: 'Its media type.', examples: ['application/pdf'] }),
  state: Type.Union([Type.Literal('waiting'), Type.Literal('whole')], {
    description: 'Whether its bytes are there.', examples: ['whole']
  }),
  url: nullable<string>('string', {
    description: 'Where its bytes are, without a key; null while it waits.', examples: ['https://example.com/files/…']
  }),
  url_expires_at: nullable<string>('string', {
    format: 'date-time', description: 'Until when.', examples: ['2026-11-20T09:15:00.000Z']
  }),
}, { description: 'The file.' })
export type FileAnswer = Static<typeof fileAnswer>
