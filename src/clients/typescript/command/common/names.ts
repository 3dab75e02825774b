// What the service and the command both know. It is written here, since the command goes out without the service.

/** The name of a tenant or an agent. */
export const namePattern = '^[A-Za-z0-9._-]{1,64}$'

const nameShape = new RegExp(namePattern)

export function isName (text: string): boolean {
  return nameShape.test(text)
}

/**
 * The name of an inbox: the same, but neither `.` nor `..`. Those are directions in a path, so a client would ask for
 * something else. Without a lookahead, since not every client's expressions have that.
 */
export const inboxPattern =
  '^([A-Za-z0-9_-][A-Za-z0-9._-]{0,63}|[.][A-Za-z0-9_-][A-Za-z0-9._-]{0,62}|[.][.][A-Za-z0-9._-]{1,62})$'

const inboxShape = new RegExp(inboxPattern)

export function isInbox (text: string): boolean {
  return inboxShape.test(text)
}

/** The group of handoffs: whose work it is. */
export const groupPattern = '^[A-Za-z0-9._:@-]{1,64}$'

const groupShape = new RegExp(groupPattern)

export function isGroup (text: string): boolean {
  return groupShape.test(text)
}

/** What a worker calls itself (Handoff-Worker). */
export const workerPattern = '^[A-Za-z0-9._:@/-]{1,100}$'

const workerShape = new RegExp(workerPattern)

export function isWorker (text: string): boolean {
  return workerShape.test(text)
}

/**
 * Labels: names and values by which a passer finds its handoffs again. One is kept as `name:value`. A name has no
 * colon, so the first one ends it.
 */
export type Labels = readonly string[]

export const labelNamePattern = '^[A-Za-z0-9._-]{1,32}$'
export const labelValuePattern = '^[A-Za-z0-9._:/@-]{1,64}$'

const labelShape = new RegExp(`${labelNamePattern.slice(0, -1)}:${labelValuePattern.slice(1)}`)

/** Is it a label, as in `run:42`? */
export function isLabel (text: string): boolean {
  return labelShape.test(text)
}

export function partsOf (label: string): [name: string, value: string] {
  const colon = label.indexOf(':')
  return [label.slice(0, colon), label.slice(colon + 1)]
}

/** Their JSON object. Their characters need no escapes. */
export function labelsText (labels: Labels): string {
  return `{${labels.map(label => {
    const [name, value] = partsOf(label)
    return `"${name}":"${value}"`
  }).join()}}`
}
