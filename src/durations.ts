/** Durations as people write them, in settings and in options of the command. */

const units = { ms: 1, s: 1000, m: 60_000, h: 3600_000, d: 86_400_000 } as const
const shape = /^(0|[1-9][0-9]{0,8})(ms|s|m|h|d)$/

/** `1500ms`, `60s`, `15m`, `48h`, `90d`. @returns milliseconds; undefined for anything else */
export function readDuration (text: string): number | undefined {
  const [, count, unit] = shape.exec(text) ?? []
  return unit === undefined ? undefined : Number(count) * units[unit as keyof typeof units]
}
