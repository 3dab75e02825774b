import { Type } from '@sinclair/typebox'
import { fileAnswer, fileBody, fileParams, madeFile } from '../core/schemas/uploads.ts'
import type { FileBody } from '../core/schemas/uploads.ts'
import { ignoredKeyHeaders, noQuery, passHeaders } from '../core/schemas/handoffs.ts'
import { operation, refusedBy, stays, unmoved } from './operation.ts'
import type { Services } from './operation.ts'

/** Files that are too large to pass: their bytes go to a store, and handoffs name them. */

const uploading = { scope: ['pass', 'catch'], tag: 'files', query: noQuery } as const

export function makeFile ({ files }: Services) {
  return operation<FileBody>({
    ...uploading,
    name: 'makeFile',
    method: 'POST',
    requireIt: () => files.requireStore(),
    path: '/api/files',
    summary: 'Upload a file',
    description: 'Answers the request by which its bytes are sent, within an hour, without a key. What is sent must ' +
      'have just the length and the digest that were declared. Then `files` of pass and done may name it.',
    headers: passHeaders,
    body: fileBody,
    answers: { 201: madeFile },
    refusals: ['files_off', ...refusedBy('file-make'), 'idempotency_key_reused'],
    async run ({ caller, body, bytes, key }) {
      const { answer, replayed } = await files.make(caller, body, bytes, key)
      return { status: 201, answer, replayed, moved: stays }
    },
  })
}

export function getFile ({ files }: Services) {
  return operation({
    scope: ['pass', 'catch', 'status', 'read', 'approve'],
    tag: 'files',
    query: noQuery,
    name: 'getFile',
    method: 'GET',
    requireIt: () => files.requireStore(),
    path: '/api/files/:id',
    params: fileParams,
    summary: 'Read a file',
    description: 'For who uploaded it, and who may read it as a part of a handoff. Its bytes are at `url` for 15 ' +
      'minutes.',
    answers: { 200: fileAnswer },
    refusals: ['files_off'],
    run: async ({ caller, id }) => unmoved(await files.get(caller, id)),
  })
}

export function deleteFile ({ files }: Services) {
  return operation({
    ...uploading,
    name: 'deleteFile',
    method: 'DELETE',
    requireIt: () => files.requireStore(),
    path: '/api/files/:id',
    params: fileParams,
    headers: ignoredKeyHeaders,
    summary: 'Delete a file',
    description: 'By who uploaded it, while no handoff has it.',
    answers: { 204: Type.Null({ description: 'Deleted.' }) },
    refusals: ['files_off', 'file_in_use'],
    async run ({ caller, id }) {
      await files.delete(caller, id)
      return unmoved(undefined, 204)
    },
  })
}
