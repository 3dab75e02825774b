import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Every scenario's figures, by its name, in one file of the results' folder. Each run replaces those of its own scenarios. */
export function readFigures (results: string): Record<string, object> {
  try {
    return JSON.parse(readFileSync(join(results, 'figures.json'), 'utf8')) as Record<string, object>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return {}
  }
}

export async function keepFigures (results: string, scenario: string, figures: object): Promise<void> {
  await writeFile(join(results, 'figures.json'), JSON.stringify({ ...readFigures(results), [scenario]: figures }, null, 2) + '\n')
}
