import { Type } from '@sinclair/typebox'
import { scopes } from '../model.ts'
import { nullable, oneOf } from './parts.ts'

/** Who the caller is. */
export const whoamiAnswer = Type.Object({
  tenant: Type.String({ examples: ['default'] }),
  agent: Type.String({ examples: ['researcher'] }),
  scopes: Type.Array(oneOf(scopes), { description: 'What it may do.', examples: [['pass', 'catch', 'status']] }),
  inboxes: nullable<string[]>('array', {
    items: { type: 'string' },
    description: 'The inboxes that it may catch from; null for all of its tenant.',
    examples: [null],
  }),
  expires_at: nullable<string>('string', {
    format: 'date-time', description: 'When its key or token ends; null for never.', examples: [null]
  }),
  issuer: Type.Optional(Type.String({
    description: 'Who issued its token; only with a token.', examples: ['https://id.example.com']
  })),
  subject: Type.Optional(Type.String({ description: 'Who that is for the issuer.', examples: ['8c1f'] })),
}, { description: 'Who the caller is.' })
