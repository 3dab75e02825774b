import { readPlainSecret } from '../core/seal.ts'
import type { Seal } from '../core/seal.ts'

/** The token of a pass without an Idempotency-Key. Its id is random, so only a retry of this very pass can meet it. */
export const noToken = '-'
/** The options of a pass that only asks whether it was made before. Sealed, there are more of them. */
export const onlyAsks = ' ?'
/** What stands for the worker of a done that only asks whether it could be done: then it is `unchecked`. */
export const asksAlone = '?'

const nothing = Buffer.alloc(0)

/** A pass as Redis gets it: its texts are sealed, and its options say how long they are then, and its other marks. */
export function sealedPass<Pass extends { token: string, options: string, payload: Buffer }> (
  handoff: Pass, seal: Seal
): Pass {
  const { options, payload } = handoff
  const [token, ...others] = seal.token('pass', handoff.token).split(',') as [string, ...string[]]
  const marks = others.length === 0 ? '' : ` k${others.join()}`
  if (options === onlyAsks) return { ...handoff, token, options: options + marks, payload: nothing }
  let end = payload.length
  const cut = (size: string | undefined) => {
    const from = end - Number(size ?? 0)
    const text = payload.subarray(from, end)
    end = from
    return text
  }
  const target = cut(/ C[a-z]+1?\/(\d+)/.exec(options)?.[1])
  const after = cut(/ A[a-z]\/\d+\/\d+\/(\d+)/.exec(options)?.[1])
  const schema = seal.bytes('schema', cut(/ z(\d+)/.exec(options)?.[1]))
  const its = payload.subarray(0, end)
  const [url, secret = ''] = target.toString('latin1').split(' ') as [string, string?]
  const sealedTarget = secret === '' ? url : `${url} ${seal.secret('target', readPlainSecret(secret))}`
  const taskTo = (size: string) => its.toString('utf8', taskStart, taskStart + Number(size))
  let [beginning, title] = ['', '']
  const words = options
    .replace(/ z\d+/, ` z${schema.length}`)
    .replace(/( C[a-z]+1?\/)\d+/, (_, before: string) => `${before}${sealedTarget.length}`)
    .replace(/ l(\d+)/, (_, size: string) => ` l${(beginning = seal.word('beginning', `${taskTo(size)}"`)).length}`)
    .replace(/ n(\d+)/, (_, size: string) => ` n${(title = seal.word('title', taskTo(size))).length}`)
    .replace(/ h(\S+)/, (_, digest: string) => ` h${sealedDigest(digest, seal)}`)
    .replace(/ s(\S+)/, (_, digest: string) => ` s${seal.marks('schema', digest)[0]}`)
  return {
    ...handoff,
    token,
    options: `${words} E${seal.key!}${marks}`,
    payload: Buffer.concat([
      seal.bytes('payload', its), schema, after, Buffer.from(sealedTarget + beginning + title, 'latin1')
    ])
  }
}

/** The task's place in a payload, which begins with its name. */
const taskStart = '"task":'.length

/** The digest of what a person decides on: what it is compared by, a dot, and itself. */
function sealedDigest (digest: string, seal: Seal): string {
  return `${seal.marks('digest', digest)[0]}.${seal.word('digest', digest)}`
}

/** Another attempt is the work's first, to which its texts are bound. */
export interface OtherOrigin { outcome: 'origin', first: string }

/** Asks again where a call's texts are bound to an attempt that isn't the first, which only the script knew. */
export async function whileOriginMoves<Reply extends { outcome: string }> (
  seal: Seal, call: () => Promise<Reply | OtherOrigin>
): Promise<Reply> {
  for (;;) {
    const reply = await call()
    if (reply.outcome !== 'origin') return reply as Reply
    seal.first = (reply as OtherOrigin).first
  }
}
