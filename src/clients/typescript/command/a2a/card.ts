import { authorizationOf } from '../../key.ts'
import { Failure, UsageError } from '../output.ts'
import { fetchFor, patientFetch } from '../proxy.ts'
import { RemoteAgent, foreignAnswer, objectIn } from './agent.ts'
import type { AgentPlace } from './agent.ts'
import { AgentError, openAnswer, readToEnd } from './exchange.ts'
import type { AgentWay } from './exchange.ts'
import { patiently } from './patience.ts'

/** Finds an agent by its card. */

/** What is read of a card's interface. */
interface AgentInterface { url?: unknown, protocolBinding?: unknown, protocolVersion?: unknown, tenant?: unknown }

const cardPath = '/.well-known/agent-card.json'
/** How long a card may take, in milliseconds. */
const cardTime = 30_000

/**
 * @param address the card's, or what its well-known path is below
 * @param keyFile whose key is sent to the origin of the address, and nowhere else
 * @param complain called where the agent is away: it is asked again, until the signal is aborted
 * @throws {UsageError} @throws {Failure} there is no agent of A2A 1.0, in words
 */
export async function findAgent (
  address: string, keyFile: string | undefined, signal: AbortSignal, complain: (error: AgentError) => void
): Promise<RemoteAgent> {
  const url = agentAddress(address)
  const fetch = fetchFor(url.href) ?? patientFetch
  const way = { fetch, authorization: keyFile === undefined ? undefined : keyIn(keyFile) }
  try {
    return agentIn(await patiently(() => fetchCard(way, url, signal), { signal, complain, faults: 0 }), way, url)
  } catch (error) {
    if (!(error instanceof AgentError)) throw error
    throw new Failure(`the agent at ${url.origin}${url.pathname}: ${error.message}`)
  }
}

function agentAddress (address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new UsageError('--a2a takes the http(s) address of an agent or of its card, without a user')
  }
  return url
}

function keyIn (keyFile: string) {
  try {
    return authorizationOf({ keyFile })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/**
 * A card's address may be any. What is below `.well-known` is looked for first, unless the address says a file. That
 * this fails says nothing of the address itself: some let only cards through, or nothing below them.
 */
async function fetchCard (way: AgentWay, url: URL, signal: AbortSignal): Promise<string> {
  const below = `${url.origin}${url.pathname.replace(/\/+$/, '')}${cardPath}`
  const places = url.pathname.endsWith('.json') ? [url.href] : [below, url.href]
  let [status, text] = [0, '']
  let failure: AgentError | undefined
  for (const place of places) {
    const request = { method: 'GET', url: place, accept: 'application/json', silence: cardTime } as const
    try {
      const answer = await openAnswer(way, request, signal)
      status = answer.status
      text = await readToEnd(answer)
      if (status === 200 && Array.isArray(objectIn(text)?.supportedInterfaces)) return text
      if (status >= 500) throw new AgentError('faulty', `it answers ${status}`)
    } catch (error) {
      if (!(error instanceof AgentError)) throw error
      failure ??= error
    }
  }
  throw failure ?? foreignAnswer(status, text)
}

/** The first of the card's interfaces that is spoken here. @param from where the card was */
function agentIn (card: string, way: AgentWay, from: URL): RemoteAgent {
  const { supportedInterfaces, capabilities } = objectIn(card) as {
    supportedInterfaces: Array<AgentInterface | null>
    capabilities?: { streaming?: unknown }
  }
  const places = supportedInterfaces.map(spokenPlace).filter(place => place !== undefined)
  if (places.length === 0) {
    const all = supportedInterfaces.map(one => `${String(one?.protocolBinding)} ${String(one?.protocolVersion)}`)
    const offer = all.join(', ').slice(0, 200) || 'nothing'
    throw new AgentError('foreign', `its card offers neither JSONRPC nor HTTP+JSON of A2A 1.0, but ${offer}`)
  }
  const mayHaveKey = ({ url }: AgentPlace) => way.authorization === undefined || new URL(url).origin === from.origin
  const place = places.find(mayHaveKey)
  if (place === undefined) {
    const elsewhere = new URL(places[0]!.url).origin
    throw new AgentError('foreign', `its card is at ${from.origin}, and says that the agent is at ${elsewhere}: ` +
      'the key isn’t sent to another origin; give --a2a an address there')
  }
  const fetch = fetchFor(place.url) ?? patientFetch
  return new RemoteAgent({ ...way, fetch }, place, capabilities?.streaming === true)
}

/** @returns undefined where it is spoken in another way */
function spokenPlace (one: AgentInterface | null): AgentPlace | undefined {
  const { url, protocolBinding: binding, protocolVersion: version, tenant } = one ?? {}
  if (binding !== 'JSONRPC' && binding !== 'HTTP+JSON') return undefined
  if (!/^1(\.|$)/.test(String(version)) || typeof url !== 'string') return undefined
  if (!/^https?:/.test(url) || !URL.canParse(url)) return undefined
  // JSON-RPC's is used as it is, and paths come behind the other's.
  const address = binding === 'JSONRPC' ? url : url.replace(/\/+$/, '')
  return { url: address, binding, tenant: typeof tenant === 'string' && tenant !== '' ? tenant : undefined }
}
