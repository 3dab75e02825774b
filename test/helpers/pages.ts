import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { projectRoot } from './service.ts'

/** A fenced block of a page. */
export interface Block {
  /** The info string of the fence: `sh` for commands. */
  language: string
  text: string
  /** The last heading before it, of any level; empty before the first. */
  heading: string
}

export interface Page {
  headings: string[]
  blocks: Block[]
  /** The targets of links and images, as written. */
  links: string[]
  /** The texts between backticks. */
  code: string[]
}

/** Every file that is tracked or not ignored by git, relative to the root. */
export function projectFiles (): string[] {
  return execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: projectRoot, encoding: 'utf8' }).trim().split('\n')
}

/** Whether a page is for users: tests run its commands. */
export function isManual (path: string): boolean {
  return /^(README|CONTRIBUTING|SECURITY)\.md$|^docs\/[^/]+\.md$/.test(path)
}

export function readPage (path: string): Page {
  return parsePage(readFileSync(join(projectRoot, path), 'utf8'))
}

export function parsePage (text: string): Page {
  const page: Page = { headings: [], blocks: [], links: [], code: [] }
  let open: Block | undefined
  let prose = ''
  for (const line of text.split('\n')) {
    const [, language] = /^\s*```(.*)$/.exec(line) ?? []
    if (open !== undefined) {
      if (language === undefined) open.text += `${line}\n`
      else open = undefined
    } else if (language !== undefined) {
      open = { language: language.trim(), text: '', heading: page.headings.at(-1) ?? '' }
      page.blocks.push(open)
    } else {
      const [, heading] = /^#{1,6} +(.*?) *#*$/.exec(line) ?? []
      if (heading !== undefined) page.headings.push(heading)
      prose += `${line}\n`
    }
  }
  for (const paragraph of prose.split(/\n\s*\n/)) readParagraph(paragraph, page)
  return page
}

/** A line may break within a link's text or between backticks, but a paragraph may not. */
function readParagraph (paragraph: string, page: Page): void {
  page.code.push(...[...paragraph.matchAll(/`([^`]+)`/g)].map(([, code]) => code!.replaceAll('\n', ' ')))
  const prose = paragraph.replace(/`[^`]*`/g, '')
  page.links.push(...[...prose.matchAll(/\]\(([^)\s]+)(?: "[^"]*")?\)|<img src="([^"]+)"/g)].map(([, target, image]) => target ?? image!))
}

/**
 * All `sh` blocks under a heading, as one script for a test to run. pages.test.ts searches for calls of this function to find which
 * commands are run, so both arguments must be literals.
 */
export function commandsUnder (path: string, heading: string): string {
  const blocks = readPage(path).blocks.filter(block => block.language === 'sh' && block.heading === heading)
  if (blocks.length === 0) throw new Error(`${path} has no commands under "${heading}"`)
  return blocks.map(({ text }) => text).join('')
}

/** The anchors of a page's headings, as code hosts make them. */
export function anchorsOf ({ headings }: Page): string[] {
  const seen = new Map<string, number>()
  return headings.map(heading => {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = text.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')
    const before = seen.get(anchor) ?? 0
    seen.set(anchor, before + 1)
    return before === 0 ? anchor : `${anchor}-${before}`
  })
}

/** Makes a copy like a fresh clone: tracked and new files, without installed packages or a build. */
export async function freshClone (directory: string): Promise<void> {
  for (const file of projectFiles()) {
    await mkdir(dirname(join(directory, file)), { recursive: true })
    await cp(join(projectRoot, file), join(directory, file)).catch(error => { if (error.code !== 'ENOENT') throw error })
  }
}
