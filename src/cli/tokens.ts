import { text } from 'node:stream/consumers'
import { TokenChecker, BadToken, tokenFaultOf } from '../auth/token-check.ts'
import { Failure, UsageError, print, table } from '../clients/typescript/command/output.ts'
import { loadConfig } from '../config.ts'
import { Unavailable } from '../core/errors.ts'
import { iso } from '../core/iso.ts'
import { maxBlocks } from '../store/token-blocks.ts'
import type { TokenBlock } from '../store/token-blocks.ts'
import { author, withKeys } from './keys.ts'
import { printJson } from './output.ts'

/** Whose tokens. */
export interface WhoseTokens { issuer: string, subject: string, json?: boolean }

/** Blocks a subject's tokens. @param lasts milliseconds; left out for good */
export async function blockTokens (
  { issuer, subject, for: lasts, json = false }: WhoseTokens & { for?: number }
): Promise<void> {
  const reply = await withKeys(keys => keys.blocks.set(issuer, subject, lasts ?? Infinity, author()))
  if (reply.outcome === 'blocks_full') throw new Failure(`${maxBlocks} subjects are blocked, and no more are possible: unblock some`)
  const until = reply.until!
  if (json) return printJson(blockMembers({ issuer, subject, until }))
  print(`blocked: within 2 s the tokens of ${subject} are refused everywhere, ${untilWords(until)}`)
}

/** Without a block nothing changes, and that is no error. */
export async function unblockTokens ({ issuer, subject, json = false }: WhoseTokens): Promise<void> {
  const reply = await withKeys(keys => keys.blocks.set(issuer, subject, null, author()))
  const removed = reply.outcome === 'set' && reply.before !== null
  if (json) return printJson({ issuer, subject, removed })
  print(removed
    ? `unblocked: within 2 s the tokens of ${subject} count again`
    : `the tokens of ${subject} were not blocked; nothing changed`)
}

export async function listBlocks ({ json = false }: { json?: boolean }): Promise<void> {
  const all = await withKeys(keys => keys.blocks.list())
  all.sort((one, other) => `${one.issuer} ${one.subject}` < `${other.issuer} ${other.subject}` ? -1 : 1)
  if (json) return printJson(all.map(blockMembers))
  if (all.length === 0) return print('no tokens are blocked')
  print(table([['issuer', 'subject', 'until'], ...all.map(one => [one.issuer, one.subject, untilWords(one.until)])]))
}

function blockMembers ({ issuer, subject, until }: TokenBlock): object {
  return { issuer, subject, until: until === Infinity ? null : iso(until) }
}

function untilWords (until: number): string {
  return until === Infinity ? 'for good' : `until ${iso(until)}`
}

/** Says what the settings make of a token on standard input. @returns whether a rule lets its subject in */
export async function checkToken ({ json = false }: { json?: boolean }): Promise<boolean> {
  const { issuers, baseUrl, host, port } = loadConfig()
  if (issuers.length === 0) throw new UsageError('ISSUERS is not set: there are no rules to check by')
  const token = (await text(process.stdin)).trim()
  const url = baseUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  const failures: unknown[] = []
  const output = { info () {}, error ({ why }: { why?: unknown }) { failures.push(why) } }
  const found = await verdictOn(new TokenChecker(issuers, () => url, output, () => {}), token).catch((error: Error) => {
    throw error instanceof Unavailable ? new Failure([error.message, ...failures].join(': ')) : error
  })
  if (json) printJson(found)
  else print(found.error === undefined ? found.says : `refused (${found.error}): ${found.says}`)
  return found.error === undefined
}

interface Verdict { error?: string, says: string, rule?: number, identity?: object, only_at?: string }

async function verdictOn (checker: TokenChecker, given: string): Promise<Verdict> {
  try {
    const token = await checker.check(given)
    const error = token.places.length === 0 ? 'audience' : tokenFaultOf(token, token.places[0]!)
    if (error !== undefined) return { error, says: faultWords[error] }
    const { ruling } = token
    if (ruling.rule === null) return { error: 'rules', says: `none of the rules of ${token.issuer} matches` }
    const at = `rule ${ruling.rule} of ${token.issuer}`
    if ('lacks' in ruling) return { error: 'rules', says: `${at} matches, and finds no ${ruling.lacks}`, rule: ruling.rule }
    const { tenant, agent, scopes, inboxes } = ruling.identity
    const isForMcp = !token.places.includes('api')
    return {
      says: `${at} matches: agent ${agent} of tenant ${tenant}, ${scopes.length === 0 ? 'no scopes' : `scopes ${scopes.join()}`}` +
        `${inboxes === null ? '' : `, inboxes ${inboxes.join()}`}${isForMcp ? '; at /mcp alone' : ''}`,
      rule: ruling.rule,
      identity: { tenant, agent, scopes, inboxes },
      ...isForMcp && { only_at: '/mcp' },
    }
  } catch (error) {
    if (error instanceof BadToken) return { error: error.why, says: faultWords[error.why as keyof typeof faultWords] }
    throw error
  } finally {
    await checker.stop()
  }
}

const faultWords = {
  malformed: 'this is no token, lacks iss, sub, aud or exp, or has a crit or typ that is not taken',
  issuer: 'ISSUERS does not name its iss',
  signature: 'no key of its issuer signed it, or not by an algorithm that is taken',
  expiry: 'it has expired, or is not valid yet',
  audience: 'its aud is none of the issuer’s audiences in ISSUERS, which by default are BASE_URL and BASE_URL/mcp',
} as const
