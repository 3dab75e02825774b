import { LRUCache } from 'lru-cache'
import type { Issuer } from '../core/issuers.ts'
import type { GivenCard } from '../core/schemas/cards.ts'
import type { SigningKey } from '../core/signing.ts'
import { jwksPath } from '../http/jwks.ts'
import type { Cards, StoredCard } from '../store/cards.ts'
import { cardSignatures } from './card-signatures.ts'
import { memberIn } from './fields.ts'
import { optionsUri } from './message.ts'

/** An inbox as an agent. */
export interface Card {
  inbox: string
  isPublic: boolean
  inputModes: readonly string[]
  outputModes: readonly string[]
  deduplicates: boolean
  /** Options as JSON objects. */
  defaults: Buffer | undefined
  fixed: Buffer | undefined
  given: GivenCard
  text: string
  setAt: number
}

const usualModes = ['text/plain', 'application/json']

/** How many parsed cards are kept. */
const maxParsed = 1000

/** Finds the cards of inboxes. */
export class CardReader {
  readonly #cards: Pick<Cards, 'get' | 'glance'>
  readonly #parsed = new LRUCache<string, Card>({ max: maxParsed })

  constructor (cards: Pick<Cards, 'get' | 'glance'>) {
    this.#cards = cards
  }

  /** @returns null if the inbox is no agent */
  async find (tenant: string, inbox: string): Promise<Card | null> {
    const stored = await this.#cards.get(tenant, inbox)
    return stored && this.#cardOf(tenant, inbox, stored)
  }

  /** The same for a request without a key, as it was within the last second. @returns undefined if too many ask */
  async glance (tenant: string, inbox: string): Promise<Card | null | undefined> {
    const stored = await this.#cards.glance(tenant, inbox)
    return stored && this.#cardOf(tenant, inbox, stored)
  }

  #cardOf (tenant: string, inbox: string, stored: StoredCard): Card {
    const name = `${tenant} ${inbox}`
    const known = this.#parsed.get(name)
    if (known?.setAt === stored.setAt && known.text === stored.text) return known
    const card = parseCard(inbox, stored)
    this.#parsed.set(name, card)
    return card
  }
}

function parseCard (inbox: string, { text, setAt }: StoredCard): Card {
  const given = JSON.parse(text) as GivenCard
  const options = memberIn(Buffer.from(text), 'options')
  return {
    inbox,
    given,
    text,
    setAt,
    isPublic: given.public ?? false,
    inputModes: given.defaultInputModes ?? usualModes,
    outputModes: given.defaultOutputModes ?? usualModes,
    deduplicates: given.deduplicate ?? true,
    defaults: memberIn(options, 'defaults'),
    fixed: memberIn(options, 'fixed'),
  }
}

/**
 * What a card says of the service. `pushes`: whether it sends push notifications. `signs`: with which key it signs, if
 * there is one.
 */
export interface CardSettings { issuers: readonly Issuer[], pushes: boolean, signs: SigningKey | undefined }

/** The document. @param path of the agent, below the service's address */
export function cardDocument (card: Card, baseUrl: string, path: string, settings: CardSettings): string {
  const document = unsigned(card, `${baseUrl}${path}`, settings)
  const { signs: key } = settings
  const signatures = key === undefined ? [] : cardSignatures(document, key, `${baseUrl}${jwksPath}`)
  return JSON.stringify({ ...document, ...signatures.length > 0 && { signatures } })
}

function unsigned (card: Card, url: string, settings: CardSettings): object {
  const { given, inbox, inputModes, outputModes } = card
  const { description, name = inbox, version = '1', skills, documentationUrl, iconUrl } = given
  const schemes = [
    ['bearer', { httpAuthSecurityScheme: { scheme: 'Bearer', description: 'A key of this service.' } }],
    ...settings.issuers.map(({ issuer }, at) => [`oidc${at + 1}`, {
      openIdConnectSecurityScheme: { openIdConnectUrl: `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration` }
    }] as const)
  ] as const
  return {
    name,
    description,
    supportedInterfaces: ['JSONRPC', 'HTTP+JSON'].map(protocolBinding => (
      { url, protocolBinding, protocolVersion: '1.0' }
    )),
    version,
    documentationUrl,
    iconUrl,
    capabilities: {
      streaming: true,
      pushNotifications: settings.pushes,
      extendedAgentCard: false,
      extensions: [{
        uri: optionsUri,
        description: 'Options of the work: priority, group, deadlines, attempts, whether a person must approve it.',
        required: false
      }],
    },
    securitySchemes: Object.fromEntries(schemes),
    securityRequirements: schemes.map(([scheme]) => ({ schemes: { [scheme]: { list: [] } } })),
    defaultInputModes: inputModes,
    defaultOutputModes: outputModes,
    skills,
  }
}
