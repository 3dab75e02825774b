import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Goal } from './contest.ts'
import { cpuOfTurn } from './in-turns.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { catcherKey, passerKey, startService } from './server-process.ts'

/** Handoffs a turn, connections, and turns of each way in a round: short ones, so that a busy minute is both's. */
const turn = { handoffs: 200, connections: 32, times: 40 }
const limit = 1.03
const issuer = 'https://id.example.com'
const audience = 'https://handoff.example.com'

/** What agents send, in place of each other. */
const ways = ['key', 'token'] as const
type Way = typeof ways[number]

/** Microseconds of the service's CPU a request; and of the turns that followed each other, what the second way took of the first. */
type Round = Record<Way, number> & { ratio: number }

/** What a request with a token of an issuer costs, beside one with a key. */
export async function tokens ({ rounds: count, say }: BenchOptions): Promise<Report> {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
  const rules = [{ anyone: true, tenant: 'default', agent: { claim: 'sub' }, scopes: ['pass', 'catch', 'status'] }]
  const ISSUERS = JSON.stringify([{ issuer, audience, jwks: { keys: [await exportJWK(publicKey)] }, rules }])
  const signed = (sub: string) => new SignJWT({ 'kubernetes.io': { namespace: 'agents', node: { name: 'node-1' }, serviceaccount: { name: sub } } })
    .setProtectedHeader({ alg: 'RS256' }).setIssuer(issuer).setAudience(audience).setSubject(sub).setIssuedAt().setExpirationTime('1 day').sign(privateKey)
  const secrets: Record<Way, { passer: string, catcher: string }> = {
    key: { passer: passerKey, catcher: catcherKey },
    token: { passer: await signed('passer'), catcher: await signed('catcher') },
  }
  const server = await benchRedis(say)
  const service = await startService(server.url, false, { ISSUERS })
  const rounds: Round[] = []

  try {
    for (let round = 0; round <= count; round++) {
      const costs: Record<Way, number[]> = { key: [], token: [] }
      for (let time = 0; time < turn.times; time++) {
        for (const way of time % 2 === 0 ? ways : [...ways].reverse()) costs[way].push(await cpuOfTurn(service, turn, secrets[way]))
      }
      const ratio = median(costs.token.map((cost, time) => cost / costs.key[time]!))
      const figures = { key: median(costs.key), token: median(costs.token), ratio }
      // The first round is a warm-up.
      if (round > 0) rounds.push(figures)
      say(`tokens: round ${round} of ${count}: ${ways.map(way => `${way} ${figures[way].toFixed(1)}`).join(', ')} µs: ${ratio.toFixed(3)}`)
    }
  } finally {
    await service.stop()
    await server.stop()
  }
  return report(rounds, server.version, secrets.token.passer.length)
}

function report (rounds: Round[], redisVersion: string, length: number): Report {
  const where = circumstances(redisVersion)
  const of = (one: (round: Round) => number) => median(rounds.map(one))
  const ratio = of(({ ratio }) => ratio)
  const goals: Goal[] = [{ what: 'the service’s CPU of a request with a token, of one with a key', atMost: limit, measured: ratio }]
  const table = markdownTable(['µs of CPU a request', 'service', 'of a key’s'], ways.map(way =>
    [`with a ${way}`, of(round => round[way]).toFixed(1), way === 'key' ? '' : ratio.toFixed(3)]))
  return {
    table: `${table}\nMedians of ${rounds.length} rounds of ${turn.times} turns of each, of ${turn.handoffs} handoffs of 1 KB over ${turn.connections} connections: pass, catch and done. The token has ${length} bytes.\n\n${caption(where)}\n`,
    figures: { ...where, goals, rounds },
  }
}
