import { Type } from '@sinclair/typebox'
import { nullable } from './schemas/parts.ts'
import type { Reader } from './words.ts'

/** Pass's `callback`: its form, and how Redis keeps what it tells. */

/** What a webhook's URL is written with. */
export const urlPattern = '^[!-~]{1,2048}$'

/** Those that callbacks can send, each by its letter in field x (lua/lib/events.lua). */
export const callbackLetters: Readonly<Record<string, string>> = {
  'handoff.caught': 'c',
  'handoff.done': 'd',
  'handoff.failed': 'f',
  'handoff.declined': 'l',
  'handoff.cancelled': 'x',
  'handoff.expired': 'e',
  'handoff.rejected': 'j',
  'handoff.asked': 'a',
  'handoff.reissued': 'r',
}
export const callbackTypes: readonly string[] = Object.keys(callbackLetters)

/** Does its callback have the result (lua/lib/events.lua, word C)? */
export const callbackWord: Reader<{ withResult: boolean }> = { read: word => ({ withResult: word.endsWith('1') }) }

/** A callback, as pass takes it. */
export interface GivenCallback { url: string, types?: string[] | null, token?: string | null, result?: boolean | null }

/** In pass's body. The service checks the list's elements. */
export const givenCallback = Type.Optional(nullable<GivenCallback>('object', {
  properties: {
    url: Type.String({ pattern: urlPattern, description: 'Like a webhook’s.' }),
    types: nullable<string[]>('array', {
      items: { type: 'string', enum: [...callbackTypes] },
      description: 'What is sent; without it how the handoff ended, and what its catcher asks.'
    }),
    token: nullable<string>('string', {
      pattern: '^[!-~]{1,1024}$', description: 'Sent as a bearer token. No answer shows it.'
    }),
    result: nullable<boolean>('boolean', { default: false, description: 'Whether the result, or the error, is sent.' }),
  },
  required: ['url'],
  additionalProperties: false,
  description: 'The address that is notified of what becomes of the handoff.',
  examples: [{ url: 'https://example.com/done', result: true }]
}))

export const callbackOnStatus = Type.Optional(Type.Object({
  url: Type.String({ description: 'Without its query.', examples: ['https://example.com/done'] }),
  pending: Type.Integer({ description: 'How many are to be delivered.' }),
  delivered: Type.Integer(),
  failed: Type.Integer({ description: 'How many could not be delivered.' }),
  last_status: nullable<number>('integer', { description: 'How the address answered last.', examples: [204] }),
  last_error: nullable<string>('string', { description: 'Why it gave no answer.', examples: [null] }),
  last_at: nullable<string>('string', { format: 'date-time', description: 'When that was.' }),
}, { description: 'Its callback.' }))

export const callbackOnApproval = Type.Optional(Type.Object({
  url: Type.String({ description: 'Without its query.', examples: ['https://example.com/done'] }),
  result: Type.Boolean({ description: 'Whether the result is sent there.' }),
}, { description: 'The address that is notified of what becomes of it.' }))
