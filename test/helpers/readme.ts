import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { projectRoot } from './service.ts'

/** The README's commands, its `sh` blocks in order: those under a heading of the second level, or those under all but these. */
export async function shBlocks (choice: { under: string } | { butUnder: string }): Promise<string[]> {
  const readme = await readFile(join(projectRoot, 'README.md'), 'utf8')
  const sections = readme.split(/^(?=## )/m)
  const chosen = sections.filter(section => 'under' in choice ? section.startsWith(`## ${choice.under}\n`) : !section.startsWith(`## ${choice.butUnder}\n`))
  return [...chosen.join('').matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block]) => block!.trim())
}
