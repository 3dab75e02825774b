import { html } from 'ghtml'

/**
 * Characters that a person can't see, or that make them see a different text than an agent gets: control characters except tab and line
 * breaks, bidirectional controls, zero-width characters, tags, and lone surrogates. The two variation selectors are exempt: emoji need them.
 */
const hidden = /(?!\t|\n|\r|\ufe0e|\ufe0f)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

const names: Record<number, string> = {
  0x00ad: 'SOFT HYPHEN',
  0x061c: 'ARABIC LETTER MARK',
  0x200b: 'ZERO WIDTH SPACE',
  0x200c: 'ZERO WIDTH NON-JOINER',
  0x200d: 'ZERO WIDTH JOINER',
  0x200e: 'LEFT-TO-RIGHT MARK',
  0x200f: 'RIGHT-TO-LEFT MARK',
  0x202a: 'LEFT-TO-RIGHT EMBEDDING',
  0x202b: 'RIGHT-TO-LEFT EMBEDDING',
  0x202c: 'POP DIRECTIONAL FORMATTING',
  0x202d: 'LEFT-TO-RIGHT OVERRIDE',
  0x202e: 'RIGHT-TO-LEFT OVERRIDE',
  0x2060: 'WORD JOINER',
  0x2066: 'LEFT-TO-RIGHT ISOLATE',
  0x2067: 'RIGHT-TO-LEFT ISOLATE',
  0x2068: 'FIRST STRONG ISOLATE',
  0x2069: 'POP DIRECTIONAL ISOLATE',
  0xfeff: 'ZERO WIDTH NO-BREAK SPACE',
}

/** How many more characters of a page a mark takes than a plain character. */
const markCost = 20

/** Text as HTML that shows exactly this text: markup is escaped, and invisible characters are spelled out. */
export function visible (text: string): string {
  let shown = ''
  let end = 0
  for (const { 0: character, index } of text.matchAll(hidden)) {
    shown += html`${text.slice(end, index)}!${mark(character)}`
    end = index + character.length
  }
  return shown + html`${text.slice(end)}`
}

function mark (character: string): string {
  const code = character.codePointAt(0) as number
  const name = names[code] ?? 'INVISIBLE CHARACTER'
  return html`<span class="invisible-char" title="${name}">⟦U+${code.toString(16).toUpperCase().padStart(4, '0')}⟧</span>`
}

/** As much of the text's beginning as fits `budget` characters of a page. */
export function beginningOf (text: string, budget: number): string {
  let end = Math.min(text.length, budget)
  let marks = 0
  for (const { index } of text.slice(0, end).matchAll(hidden)) {
    if (index + marks * markCost >= budget) {
      end = index
      break
    }
    marks++
  }
  // A lone half of a surrogate pair would look like damage to the text.
  if (end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1))) end--
  return text.slice(0, end)
}
