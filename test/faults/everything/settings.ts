import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { keepSecret } from '../../helpers/log-sink.ts'
import { agentKeys, eventSettings } from '../load-keys.ts'
import type { Stage } from '../scenario.ts'

/** Everything at once: events, webhooks and callbacks, and besides tokens, encryption, A2A, schedules, groups and files. */

const issuer = 'https://issuer.example'
const day = 86_400
/** How long a token is good (s): longer than the longest run. */
const tokenLife = 2 * day

/** The settings of each replica, by its number: all have the same keys for encryption, and each writes with another one. */
export async function everything (t: Stage): Promise<(replica: number) => Record<string, string>> {
  const directory = await mkdtemp(join(tmpdir(), 'handoff-files-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const payloadKeys = ['june', 'july'].map(name => `${name}:${randomBytes(32).toString('base64')}`)
  const settings = {
    ...eventSettings,
    ISSUERS: JSON.stringify([{
      issuer,
      jwks: { keys: [jwk()] },
      rules: [{ when: { sub: 'load*' }, tenant: { claim: 'tenant' }, agent: { claim: 'agent' }, scopes: ['pass', 'catch', 'status'] }],
    }]),
    FILES_URL: pathToFileURL(directory).href,
  }
  return replica => ({ ...settings, PAYLOAD_KEYS: (replica % 2 === 0 ? payloadKeys : payloadKeys.toReversed()).join(',') })
}

const pair = generateKeyPairSync('ed25519')
const jwk = () => ({ ...pair.publicKey.export({ format: 'jwk' }), kid: 'load', alg: 'EdDSA' })

const tokens = new Map<string, string>()

/** A token by which somebody is the same agent as by its key; undefined for those that have keys alone. @param agent tenant/agent */
export function tokenOf (agent: string): string | undefined {
  if (!agentKeys.some(key => key.agent === agent)) return undefined
  const known = tokens.get(agent)
  if (known !== undefined) return known
  const [tenant, name] = agent.split('/')
  const part = (members: object) => Buffer.from(JSON.stringify(members)).toString('base64url')
  const claims = { iss: issuer, sub: `load ${agent}`, aud: eventSettings.BASE_URL, exp: Math.floor(Date.now() / 1000) + tokenLife, tenant, agent: name }
  const text = `${part({ alg: 'EdDSA', kid: 'load' })}.${part(claims)}`
  const token = `${text}.${sign(null, Buffer.from(text), pair.privateKey).toString('base64url')}`
  keepSecret(token)
  tokens.set(agent, token)
  return token
}
