import {
  isLabel, labelNamePattern, labelValuePattern, labelsText, partsOf
} from '../clients/typescript/command/common/names.ts'
import type { Labels } from '../clients/typescript/command/common/names.ts'
import { eachMember, skipString } from './json.ts'

export { labelNamePattern, labelValuePattern, labelsText }
export type { Labels }

/** How many a handoff, and a filter, may have. */
export const maxLabels = 8

/** The end of a fault's message about a name that is none. */
export const labelNameExpected = 'a label’s name must be 1 to 32 of A-Z a-z 0-9 . _ -'

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

/** As an object, in which names that are numbers come first. */
export function labelsObject (labels: Labels): Record<string, string> {
  return Object.fromEntries(labels.map(partsOf))
}

/** The member `labels`, to be appended to the text of an object that has others; empty if there are none. */
export function labelsMember (labels: Labels | undefined): string {
  return labels === undefined || labels.length === 0 ? '' : `,"labels":${labelsText(labels)}`
}

/** The form of a query's `labels`: the end of a fault's message. */
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
