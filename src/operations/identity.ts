import { scopesOf } from '../auth/scopes.ts'
import { iso } from '../core/iso.ts'
import { noQuery } from '../core/schemas/handoffs.ts'
import { whoamiAnswer } from '../core/schemas/identity.ts'
import { operation, unmoved } from './operation.ts'

/** Who the caller is, by its key or its token. */
export function whoami () {
  return operation({
    name: 'whoami',
    scope: undefined,
    method: 'GET',
    path: '/api/whoami',
    tag: 'identity',
    summary: 'See who you are',
    description: 'Any key or token will do.',
    query: noQuery,
    answers: { 200: whoamiAnswer },
    async run ({ caller, requester }) {
      const { tenant, agent, inboxes, subject } = caller
      const { ends } = requester.grant()
      return unmoved({
        tenant,
        agent,
        scopes: scopesOf(caller),
        inboxes: inboxes && [...inboxes],
        expires_at: ends === Infinity ? null : iso(ends),
        ...subject
      })
    },
  })
}
