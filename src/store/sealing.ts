import type { Seal } from '../core/payload-keys.ts'

/** The token of a pass without an Idempotency-Key. Its id is random, so only a retry of this very pass can meet it. */
export const noToken = '-'
/** The options of a pass that only asks whether it was made before. */
export const onlyAsks = ' ?'
/** What stands for the worker of a done that only asks whether it could be done: then it is `unchecked`. */
export const asksAlone = '?'

const nothing = Buffer.alloc(0)

/** A pass as Redis gets it: its texts are sealed, and its options say how long they are then. */
export function sealedPass<Pass extends { options: string, payload: Buffer }> (handoff: Pass, seal: Seal): Pass {
  const { options, payload } = handoff
  if (options === onlyAsks) return { ...handoff, payload: nothing }
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
  const [url, token = ''] = target.toString('latin1').split(' ') as [string, string?]
  const sealedTarget = token === '' ? url : `${url} ${seal.secret('target', token)}`
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
    options: `${words} E${seal.key!}`,
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

/**
 * An operation that may have been made before, and then has the mark that the token had under the key of that time.
 * @param ended what the script says if another operation was made
 */
export async function withMarks<Reply extends { outcome: string }> (
  seal: Seal, kind: string, token: string, ended: ReadonlyArray<Reply['outcome']>,
  call: (mark: string) => Promise<Reply>
): Promise<Reply> {
  const [mark, ...others] = seal.marks(kind, token)
  const reply = await call(mark)
  for (const other of ended.includes(reply.outcome) ? others : []) {
    const before = await call(other)
    if (before.outcome === 'replayed') return before
  }
  return reply
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
