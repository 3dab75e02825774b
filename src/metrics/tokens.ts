import type { IssuerKeysReport } from '../auth/issuer-keys.ts'
import type { TokenRing } from '../auth/token-ring.ts'
import type { Families, Sample } from './families.ts'

/** The figures of tokens that others issue. */
export function tokenFamilies (families: Families, { counts, checker }: Pick<TokenRing, 'counts' | 'checker'>): void {
  families.counter({
    name: 'handoff_token_lookups_total',
    help: 'Token look-ups: result is hit (checked before) or miss.',
    labels: ['result'],
  }, () => [[{ result: 'hit' }, counts.hits], [{ result: 'miss' }, counts.misses]])
  families.counter({
    name: 'handoff_token_signatures_total', help: 'Signatures of tokens that were checked, right ones and wrong ones.'
  }, () => [[{}, checker.counts.verified]])
  families.counter({
    name: 'handoff_tokens_refused_total',
    help: 'Tokens refused: reason is the word in the challenge, or shed (too many signatures at once, 503).',
    labels: ['reason'],
  }, () => Object.entries({ ...counts.refused, shed: checker.counts.shed }).map(([reason, count]) =>
    [{ reason }, count]))
  const ofIssuers = (read: (report: IssuerKeysReport) => number | null) => (): Sample[] =>
    [...checker.issuers].flatMap((keys): Sample[] => {
      const value = read(keys.report())
      return value === null ? [] : [[{ issuer: keys.issuer.issuer }, value]]
    })
  families.gauge({
    name: 'handoff_issuer_answers',
    help: '1 if the issuer answered with its keys when it was asked last, else 0. Absent where ISSUERS has the keys.',
    labels: ['issuer'],
  }, ofIssuers(({ fault }) => fault === undefined ? null : fault === null ? 1 : 0))
  families.gauge({
    name: 'handoff_issuer_keys_age_seconds',
    help: 'Time since the issuer’s keys were fetched, in seconds; normally up to 3600. Beyond 86400 they don’t count.',
    labels: ['issuer'],
  }, ofIssuers(({ age }) => age === null ? null : age / 1000))
}
