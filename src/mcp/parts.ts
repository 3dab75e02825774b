/** How much of an answer one result has, in UTF-16 units: clients cut what is longer themselves, and then nobody can read the rest. */
export const longestText = 60_000

interface TextContent { type: 'text', text: string }

/**
 * An answer's text from `offset` on as a result's content: the text, or as much as one result has and where the rest begins. No part
 * ends between the halves of a surrogate pair, so each is text by itself, and all put together are the answer.
 */
export function contentOf (text: string, offset: number): TextContent[] {
  const total = text.length
  if (total - offset <= longestText) return [{ type: 'text', text: text.slice(offset) }]
  const end = offset + longestText
  const next = isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end
  return [{ type: 'text', text: text.slice(offset, next) }, { type: 'text', text: JSON.stringify({ truncated: true, total, next_offset: next }) }]
}

function isHighSurrogate (unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
