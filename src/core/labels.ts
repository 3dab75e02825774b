import { eachMember, skipString } from './json.ts'

/**
 * Labels: names and values by which a passer finds its handoffs again. One is kept as `name:value`. A name has no
 * colon, so the first one ends it.
 */
export type Labels = readonly string[]

/** How many a handoff, and a filter, may have. */
export const maxLabels = 8
export const labelNamePattern = '^[A-Za-z0-9._-]{1,32}$'
export const labelValuePattern = '^[A-Za-z0-9._:/@-]{1,64}$'

/** The end of a fault's message about a name that is none. */
export const labelNameExpected = 'a label’s name must be 1 to 32 of A-Z a-z 0-9 . _ -'

const shape = new RegExp(`${labelNamePattern.slice(0, -1)}:${labelValuePattern.slice(1)}`)

/** Is it a label, as in `run:42`? */
export function isLabel (text: string): boolean {
  return shape.test(text)
}

/**
 * The labels of a pass, in the order passed. They are read off the text: an object would move names like `1` to the
 * front.
 * @param json an object's, which the schema has accepted
 */
export function labelsIn (json: Buffer): Labels {
  const labels: string[] = []
  eachMember(json, 0, () => {}, (name, at) => {
    const end = skipString(json, at)
    labels.push(`${name}:${JSON.parse(json.toString('utf8', at, end))}`)
    return end
  })
  return labels
}

/** Their JSON object. Their characters need no escapes. */
export function labelsText (labels: Labels): string {
  return `{${labels.map(label => {
    const [name, value] = partsOf(label)
    return `"${name}":"${value}"`
  }).join()}}`
}

/** The same as an object, in which names that are numbers come first. */
export function labelsObject (labels: Labels): Record<string, string> {
  return Object.fromEntries(labels.map(partsOf))
}

/** The member `labels`, to be appended to the text of an object that has others; empty if there are none. */
export function labelsMember (labels: Labels | undefined): string {
  return labels === undefined || labels.length === 0 ? '' : `,"labels":${labelsText(labels)}`
}

export function partsOf (label: string): [name: string, value: string] {
  const colon = label.indexOf(':')
  return [label.slice(0, colon), label.slice(colon + 1)]
}

/** What a query's `labels` must be: the end of a fault's message. */
export const labelsExpected = `must be labels, as in run:42,team:red: ${maxLabels} at most`

/** The labels that a query wants, as in `run:42,team:red`; undefined for any, and null if it is malformed. */
export function wantedLabels (text: string | undefined): Labels | undefined | null {
  if (text === undefined) return undefined
  const labels = text.split(',')
  return labels.length <= maxLabels && labels.every(isLabel) ? labels : null
}

/** Has a handoff all that are wanted? */
export function hasLabels (labels: Labels | undefined, wanted: Labels): boolean {
  return wanted.every(label => labels?.includes(label))
}
