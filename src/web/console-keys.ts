import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Grant } from '../auth/grant.ts'
import { requireScope, scopesOf } from '../auth/scopes.ts'
import { Problem } from '../core/errors.ts'
import { changes, mayKnowAll, shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import type { People } from './people.ts'
import { redirect, show } from './session.ts'
import { keysPage } from './views/console-keys.ts'
import type { KeyOwner } from './views/console-keys.ts'
import { keyViewers } from './views/console-layout.ts'

interface SentSecret { Body: Record<string, unknown> | undefined }

/** A tenant's keys and limits. They are changed with the command alone. */
export function keyRoutes (app: FastifyInstance, services: Console & Pick<People, 'credentials' | 'guessesOf'>): void {
  const { keyList, about: { ratePerMinute }, credentials, guessesOf } = services

  app.get('/keys', shows, async (request, reply) => {
    requireScope(request.caller, keyViewers)
    return await showAll(request, reply, textOf(request.query, 'cursor'))
  })

  // Looks only, and is a form so that no address has a secret in it.
  app.post<SentSecret>('/keys/whose', changes, async (request, reply) => {
    const secret = textOf(request.body, 'secret')?.trim() ?? ''
    // A form that is sent again after a sign-in shows nothing: its secret was typed for another session.
    if (secret === '' || request.isSentAgain) return redirect(reply, '/console/keys')
    return await showAll(request as FastifyRequest, reply, undefined, await whoseIs(request as FastifyRequest, secret))
  })

  async function showAll (
    request: FastifyRequest, reply: FastifyReply, cursor: string | undefined, whose?: KeyOwner
  ): Promise<FastifyReply> {
    const { caller } = request
    const isLater = cursor !== undefined
    const [keys, notes] = await Promise.all([
      keyList.of(caller.tenant, cursor),
      mayKnowAll(caller) && !isLater ? keyList.payloadKeys() : []
    ])
    return show(reply, 200, keysPage({ caller, keys, notes, whose, ratePerMinute, isLater }))
  }

  /** Whose a key or a token is. It says nothing of another tenant's. */
  async function whoseIs (request: FastifyRequest, secret: string): Promise<KeyOwner> {
    let found: Grant | undefined
    try {
      found = credentials.recall(secret, 'api') ?? await credentials.find(secret, guessesOf(request), 'api')
    } catch (error) {
      if (error instanceof Problem && error.code === 'unauthorized') return { refused: error.more.detail! }
      throw error
    }
    return found?.caller.tenant === request.caller.tenant
      ? { caller: found.caller, may: scopesOf(found.caller), ends: found.ends }
      : 'unknown'
  }
}
