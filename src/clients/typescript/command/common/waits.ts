// What a pending handoff waits for, in words. The service knows it too.

/** One of the API's `waits_for`. */
interface Wait {
  reason: string
  until?: string
  blocked_by?: number
  kid?: string
  caught?: number
  max?: number
  ahead?: number
  at_least?: boolean
}

const wordsOf: Record<string, (wait: Wait) => string> = {
  approval: () => 'a person’s decision',
  delay: ({ until }) => `the end of its delay${until === undefined ? '' : `, ${until}`}`,
  after: ({ blocked_by: open }) => `${open} that it comes after`,
  locked: ({ kid }) => `a replica that has the payload key ${kid}: this one can’t decrypt it`,
  paused: () => 'its inbox, which is paused',
  max_caught: ({ caught, max }) => `room in its inbox, of which ${caught} are caught and ${max} may be`,
  max_caught_per_group: ({ caught, max }) => `room for its group, of which ${caught} are caught and ${max} may be`,
  ahead: ({ ahead, at_least: isMore }) => `${isMore === true ? 'more than ' : ''}${ahead} before it in its inbox`,
  no_listener: () => 'an agent that works on its inbox: none does',
}

/** All of it, on one line. A reason that isn't known here stands as it is. */
export function waitsInWords (waits: readonly Wait[]): string {
  if (waits.length === 0) return 'its catch, and nothing hinders that'
  return waits.map(wait => wordsOf[wait.reason]?.(wait) ?? wait.reason).join('; ')
}
