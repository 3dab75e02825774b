/**
 * The cost of the hot path, kept so that a test notices a more expensive change (test/hot-path.smoke.test.ts): ratios of instruction counts,
 * because these hardly vary between runs. `npx tsx bench/hot-path.ts` stores the current ones.
 */
import { readFile, realpath, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { instructions } from './instructions.ts'

/**
 * The factor above the kept figure that is too much. Ratios of the same code vary by up to 5 %; those of native code by up to 27 %, since a
 * garbage collection falls into a round or doesn't.
 */
const limits = { usual: 1.2, native: 1.45 }

export type Ratios = Record<string, number>
/** @see InstructionFigures */
export interface Kept { date: string, commit: string, machine: string, node: string, redis: string, ratios: Ratios }

const place = new URL('hot-path.json', import.meta.url)

/** What to do about it. */
export const advice = `To look into it: npm run bench -- instructions, here and on the commit before, has both sides of each ratio
(bench/README.md says what they are); node --cpu-prof dist/main.js under load names functions.
Where it is worth its price: npx tsx bench/hot-path.ts keeps the ratios of now, in bench/hot-path.json.`

export async function keptHotPath (): Promise<Kept> {
  return JSON.parse(await readFile(place, 'utf8')) as Kept
}

/** A line for each ratio that exceeds the kept one by more than the limit, or that is missing in either; and for each as far below. */
export function compare (measured: Ratios, kept: Ratios): { dearer: string[], cheaper: string[] } {
  const [dearer, cheaper]: [string[], string[]] = [[], []]
  for (const what of new Set([...Object.keys(kept), ...Object.keys(measured)])) {
    const [now, before] = [measured[what] ?? NaN, kept[what] ?? NaN]
    const limit = what.endsWith('native code') ? limits.native : limits.usual
    const line = `${what}: ${now.toFixed(2)}, ${(now / before).toFixed(2)} times the ${before.toFixed(2)} that was kept`
    // A ratio that can't be compared needs a check too.
    if (!(now <= before * limit)) dearer.push(line)
    else if (now * limit < before) cheaper.push(line)
  }
  return { dearer, cheaper }
}

if (process.argv[1] !== undefined && await realpath(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { table, figures: { pairs, ...kept } } = await instructions({ say: line => { process.stderr.write(`bench: ${line}\n`) }, alsoPlain: false })
  const rounded = Object.fromEntries(Object.entries(kept.ratios).map(([what, ratio]) => [what, Number(ratio.toFixed(3))]))
  await writeFile(place, JSON.stringify({ ...kept, ratios: rounded }, null, 2) + '\n')
  process.stdout.write(table)
}
