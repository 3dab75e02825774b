import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axe = readFileSync(createRequire(new URL('../others/package.json', import.meta.url)).resolve('axe-core/axe.min.js'), 'utf8')

/** axe-core's findings except minor ones: the rule, and where. `evaluate` isn't subject to the page's content security policy. */
export async function barriers (page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async () => {
    const { violations } = await (globalThis as any).axe.run()
    return violations
      .filter(({ impact }: { impact: string }) => impact !== 'minor')
      .map(({ id, impact, nodes }: any) => `${impact} ${id}: ${nodes.map((node: any) => node.html).join(' ')}`.slice(0, 500))
  })
}
