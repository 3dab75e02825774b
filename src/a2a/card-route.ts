import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Credentials } from '../auth/credentials.ts'
import { Problem } from '../core/errors.ts'
import { isInbox, isName } from '../core/model.ts'
import { useAuth } from '../http/auth.ts'
import type { GuessesOf } from '../http/auth.ts'
import { fixed, oncePer, sendFixed } from '../http/fixed-answers.ts'
import type { Fixed } from '../http/fixed-answers.ts'
import type { Cards } from '../store/cards.ts'
import { CardReader, cardDocument } from './card.ts'
import type { Card, CardSettings } from './card.ts'

interface CardRouteSettings extends CardSettings {
  baseUrl: () => string
  /** The tenant and the inbox of the agent that is at the service's own address too; undefined for none. */
  root: { tenant: string, inbox: string } | undefined
}

/** What its requests pass. */
interface Gate {
  credentials: Credentials
  guessesOf: GuessesOf
  shed: onRequestHookHandler
  limit (app: FastifyInstance): void
}

const wellKnown = '/.well-known/agent-card.json'

/** Shows the cards of inboxes. A public one needs no key. @returns what finds them */
export async function a2aCards (
  app: FastifyInstance, stored: Pick<Cards, 'get' | 'glance'>, { credentials, guessesOf, shed, limit }: Gate,
  settings: CardRouteSettings
): Promise<CardReader> {
  const reader = new CardReader(stored)
  await app.register(async cards => {
    cards.addHook('onRequest', shed)
    cards.addHook('onRequest', async (request, reply) => {
      reply.header('x-request-id', request.id).header('cache-control', 'no-store')
    })
    await useAuth(cards, credentials, guessesOf, cardRoutes(cards, reader, settings))
    limit(cards)
  })
  return reader
}

/** @returns whether a request needs no key */
function cardRoutes (
  app: FastifyInstance, cards: CardReader, settings: CardRouteSettings
): (request: FastifyRequest) => Promise<boolean> {
  const { baseUrl, root } = settings
  const open = new WeakMap<FastifyRequest, Card>()
  const agentOf = ({ params }: FastifyRequest) => (params as { tenant?: string }).tenant === undefined
    ? root!
    : params as { tenant: string, inbox: string }
  const paths = [`/a2a/:tenant/:inbox${wellKnown}`, ...root === undefined ? [] : [wellKnown]]
  for (const path of paths) {
    app.get(path, { schema: { hide: true } }, async (request, reply) => {
      const { tenant, inbox } = agentOf(request)
      const card = open.get(request) ?? (isName(tenant) && isInbox(inbox) ? await cards.find(tenant, inbox) : null)
      if (card === null || (!card.isPublic && request.caller?.tenant !== tenant)) throw new Problem('not_found')
      return send(request, reply, card, `/a2a/${tenant}/${inbox}`)
    })
  }
  // Made once, since signing costs, and a public card needs no key.
  const documents = new WeakMap<Card, () => Fixed>()
  function send (request: FastifyRequest, reply: FastifyReply, card: Card, path: string): FastifyReply {
    reply.header('last-modified', new Date(card.setAt).toUTCString())
    const kind = card.isPublic ? 'public, max-age=60' : 'private, max-age=60'
    const made = documents.get(card) ?? oncePer(baseUrl, base => fixed(cardDocument(card, base, path, settings)))
    documents.set(card, made)
    return sendFixed(request, reply, made(), 'application/json', kind)
  }
  return async request => {
    const { tenant, inbox } = agentOf(request)
    const card = isName(tenant) && isInbox(inbox) ? await cards.glance(tenant, inbox) : null
    // With a key the card is looked for once that is known.
    if (card === undefined && request.headers.authorization === undefined) {
      throw new Problem('unavailable')
    }
    if (card?.isPublic !== true) return false
    open.set(request, card)
    return true
  }
}
