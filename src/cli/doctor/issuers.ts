import { IssuerKeys, metadataOf, requirePlaces, signInPlaces, whyNotFetched } from '../../auth/issuer-keys.ts'
import type { IssuerKeysReport } from '../../auth/issuer-keys.ts'
import { harmless, span } from '../../clients/typescript/command/output.ts'
import type { Issuer } from '../../core/issuers.ts'
import type { Finding } from './server.ts'

/** Looks at the issuers of ISSUERS: their keys, the rules, and whether people can sign in. */
export async function checkIssuers (issuers: readonly Issuer[]): Promise<Finding[]> {
  return (await Promise.all(issuers.map(async issuer => {
    const [keys, signIn] = await Promise.all([checkKeys(issuer), checkSignIn(issuer)])
    return [...keys, ...checkRules(issuer), ...signIn]
  }))).flat()
}

async function checkKeys (issuer: Issuer): Promise<Finding[]> {
  const keys = new IssuerKeys(issuer, { info () {}, error () {} }, () => {})
  try {
    const report = await keys.look()
    if (typeof report.fault === 'string') return [awayFinding(issuer, report.fault)]
    return [usableFinding(issuer, report), ...unusableFinding(issuer, report)]
  } finally {
    await keys.stop()
  }
}

const findingName = ({ issuer }: Issuer) => `issuer ${issuer}`

function awayFinding (issuer: Issuer, reason: string): Finding {
  return {
    level: 'error',
    name: findingName(issuer),
    saw: `its keys can’t be had: ${asHarmlessJson(reason).slice(1, -1)}`,
    set: 'its issuer or jwks_uri in ISSUERS, or the way to it (DNS, network policies, NODE_EXTRA_CA_CERTS)',
    why: 'its tokens are answered 503; a replica that knows its keys takes them for a day after it fetched these'
  }
}

/** People are sent to addresses of its metadata, also where its keys are given. */
async function checkSignIn (issuer: Issuer): Promise<Finding[]> {
  if (issuer.signIn === null) return []
  const name = findingName(issuer)
  try {
    requirePlaces(await metadataOf(issuer), signInPlaces, issuer)
    return [{ level: 'ok', name, saw: 'it has what people need to sign in' }]
  } catch (error) {
    return [{
      level: 'warning',
      name,
      saw: `people can’t sign in: ${asHarmlessJson(whyNotFetched(error)).slice(1, -1)}`,
      set: 'its issuer in ISSUERS, or the way to it; without sign_in the sign-in page has no button for it',
      why: 'who comes by its button is told that it doesn’t answer'
    }]
  }
}

function usableFinding (issuer: Issuer, { usable, renewedIn }: IssuerKeysReport): Finding {
  const name = findingName(issuer)
  if (usable.length === 0) {
    return { level: 'error', name, saw: 'it has no key that can be used', why: 'all its tokens are refused' }
  }
  const kids = usable.map(kidOf).join(', ')
  const source = renewedIn === null
    ? 'in ISSUERS'
    : `fetched; the service fetches them again after ${span(Math.round(renewedIn / 1000) * 1000)}`
  return { level: 'ok', name, saw: `${keyCount(usable.length)} that can be used (${kids}), ${source}` }
}

function unusableFinding (issuer: Issuer, { unusable }: IssuerKeysReport): Finding[] {
  if (unusable.length === 0) return []
  const each = unusable.map(({ kid, why }) => `${kidOf(kid)}: ${why}`)
  return [{
    level: 'note',
    name: findingName(issuer),
    saw: `${keyCount(unusable.length)} that can’t be used (${each.join('; ')})`,
    why: 'tokens that are signed with one of these are refused'
  }]
}

function kidOf (kid: unknown): string {
  return kid === undefined ? 'without a kid' : asHarmlessJson(kid)
}

/** What an issuer says, as JSON: it can't steer the terminal. */
function asHarmlessJson (value: unknown): string {
  return harmless(JSON.stringify(value))
}

function keyCount (keys: number): string {
  return keys === 1 ? '1 key' : `${keys} keys`
}

function checkRules (issuer: Issuer): Finding[] {
  const { rules, signIn } = issuer
  const places = [
    ...rules.map(({ when }, at) => ({ when, place: `rule ${at}` })),
    ...signIn?.rules.map(({ when }, at) => ({ when, place: `rule ${at} of sign_in` })) ?? []
  ]
  const name = findingName(issuer)
  const warning = (place: string, claim: string, prefix: string): Finding => ({
    level: 'warning',
    name,
    saw: `${place} takes any ${claim} that begins with ${JSON.stringify(prefix)}`,
    set: `the whole value, or a prefix that ends in a separator, as in "${prefix}/*"`,
    why: `whoever can choose a name such as "${prefix}-evil" is let in`
  })
  return places.flatMap(({ when, place }) => when.flatMap(({ claim, prefixes }) =>
    prefixes.filter(isOpenPrefix).map(prefix => warning(place, claim.join('.'), prefix))))
}

/** It ends in no separator: that is anything but a letter or a digit. */
function isOpenPrefix (prefix: string): boolean {
  return /[\p{L}\p{N}]$/u.test(prefix)
}
