/** After how long a delivery is tried again, in milliseconds: behind the first attempt, the second, and so on. */
export const pauses: readonly number[] = [5000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000]
/** How much longer or shorter a pause may be, so that what failed at once doesn't come again at once. */
const spread = 0.2
/** The longest that a receiver may ask to be spared, in milliseconds. */
const longestWait = 3_600_000
/** After how long without a success a webhook is disabled, in milliseconds. */
export const disableAfter = 72 * 3_600_000

/**
 * When a delivery is tried again.
 * @param tried how often it was, the failure that asks included @param retryAfter what the receiver asks for, in milliseconds
 * @returns milliseconds; null: never
 */
export function pauseAfter (tried: number, retryAfter: number | null, random: () => number = Math.random): number | null {
  const pause = pauses[tried - 1]
  if (pause === undefined) return null
  return Math.round(Math.max(pause * (1 - spread + 2 * spread * random()), Math.min(retryAfter ?? 0, longestWait)))
}

/** Reads Retry-After: seconds, or a date (RFC 9110, 10.2.3), by the clock of whoever sent it. @returns milliseconds; null for none */
export function readRetryAfter ({ 'retry-after': value, date: sent = '' }: { 'retry-after'?: string | undefined, date?: string | undefined }): number | null {
  if (value === undefined) return null
  if (/^\d+$/.test(value)) return Number(value) * 1000
  const date = /[A-Za-z]/.test(value) ? Date.parse(value) : NaN
  const now = Date.parse(sent)
  return Number.isNaN(date) ? null : Math.max(0, date - (Number.isNaN(now) ? Date.now() : now))
}
