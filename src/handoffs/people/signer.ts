import { iso } from '../../core/iso.ts'
import type { Caller } from '../../core/model.ts'
import { compactJws } from '../../core/signing.ts'
import type { SigningKey, SigningKeys } from '../../core/signing.ts'
import type { ApprovalVerdict, Signed } from '../../store/approvals.ts'
import type { HandoffPlace } from '../../store/handoffs.ts'
import type { Seen } from '../../store/replies.ts'
import { digestText } from '../lifecycle/answers.ts'

/** A handoff at the moment `now`. @property digest of its content @property field what Redis has in its place */
interface Undecided extends Seen { digest: string, field: string }

/** What a person decides. @property note JSON text @property confirmed whether they sent the digest of what they saw */
interface ToSign { caller: Caller, verdict: ApprovalVerdict, note: Buffer, confirmed: boolean }

/** @returns null where nothing is signed */
export function signerOf ({ current }: SigningKeys, baseUrl: () => string): DecisionSigner | null {
  return current === undefined ? null : new DecisionSigner(current, baseUrl)
}

/** Signs people's decisions, so that an agent needn't believe the service or Redis that a person approved. */
export class DecisionSigner {
  readonly #key: SigningKey
  readonly #baseUrl: () => string

  constructor (key: SigningKey, baseUrl: () => string) {
    this.#key = key
    this.#baseUrl = baseUrl
  }

  /** Signs for the moment of that read. Those who verify know these members in this order. */
  sign ({ tenant, id }: HandoffPlace, undecided: Undecided, { caller, verdict, note, confirmed }: ToSign): Signed {
    const { now, record, digest, field } = undecided
    const { createdAt, passedBy, extra } = record
    const { subject: of } = caller
    const members = {
      iss: this.#baseUrl(),
      handoff_id: id,
      tenant,
      to: extra.to ?? null,
      passed_by: passedBy,
      created_at: iso(createdAt),
      digest: digestText(digest),
      confirmed,
      state: verdict,
      decided_at: iso(now),
      decided_by: caller.agent,
      decided_by_subject: of?.name === undefined ? null : of.subject,
    }
    const payload = `${JSON.stringify(members).slice(0, -1)},"note":${note}}`
    const signature = compactJws(this.#key.sign({ typ: 'handoff-approval+jws' }, payload))
    return { at: now, createdAt, field, digest, signature }
  }
}
