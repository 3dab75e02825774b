import type { Written } from '../core/written.ts'
import { formatKinds } from './formats.ts'
import type { FormatKind } from './formats.ts'

/** What a schema says of a field, in words. */

/**
 * How a field is drawn: a line or an area of text, a text of some format, a number, yes or no, one of some values, rows
 * of such fields; `json` for everything else.
 */
export type FieldKind = 'line' | 'text' | FormatKind | 'number' | 'boolean' | 'choice' | 'rows' | 'json'

export type Keywords = ReadonlyMap<string, Written>

/** The rules that a person should know before the answer is refused: of which kind of value, and in words. */
export const said: Record<string, [of: 'text' | 'number', words: string]> = {
  minLength: ['text', 'At least # characters.'],
  maxLength: ['text', 'At most # characters.'],
  pattern: ['text', 'It must match the pattern “#”.'],
  format: ['text', 'Its format: #.'],
  minimum: ['number', 'At least #.'],
  exclusiveMinimum: ['number', 'More than #.'],
  maximum: ['number', 'At most #.'],
  exclusiveMaximum: ['number', 'Less than #.'],
  multipleOf: ['number', 'A multiple of #.'],
}

/** The formats in words. The service doesn't check them. */
const formatWords: Record<string, string> = {
  date: 'A date, as in 2026-11-30.',
  'date-time': 'A date and time, as in 2026-11-30T14:30:00Z.',
  time: 'A time, as in 14:30:00Z.',
  duration: 'A duration, as in P1DT2H30M.',
  email: 'An e-mail address.',
  uri: 'An address (URI), as in https://example.com/.',
  uuid: 'A UUID.',
}

export function fieldWords (keywords: Keywords, kind: FieldKind): string[] {
  const isOfKind = (of: 'text' | 'number') => kind === 'choice' || (of === 'number') === (kind === 'number')
  const words = Object.entries(said).flatMap(([name, [of, text]]) => {
    const value = keywords.get(name)
    if (value === undefined || !isOfKind(of) || kind === 'boolean') return []
    if (name === 'format' && Object.hasOwn(formatKinds, value.string!) && kind === formatKinds[value.string!]) return []
    if (name === 'format' && Object.hasOwn(formatWords, value.string!)) return [formatWords[value.string!]!]
    return [text.replace('#', () => value.string ?? value.text)]
  })
  return kind === 'number' && typesIn(keywords).includes('integer') ? ['A whole number.', ...words] : words
}

export function examplesIn (keywords: Keywords, kind: FieldKind): string {
  const examples = kind === 'choice' || kind === 'boolean' ? [] : keywords.get('examples')?.items ?? []
  const shown = examples.slice(0, 5).map(example => kind === 'json' ? example.text : example.string ?? example.text)
  return shown.length === 0 ? '' : `For example: ${shown.join(', ')}`
}

export function typesIn (keywords: Keywords): string[] {
  const type = keywords.get('type')
  return type === undefined ? [] : type.isArray ? type.items.map(({ string }) => string!) : [type.string!]
}
