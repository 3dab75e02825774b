/** The path of an operation on a handoff or an inbox. */
export function pathOf (what: string, name: string): string {
  return `/api/${what}/${encodeURIComponent(name)}`
}

/** The query of the members that aren't undefined, with its question mark; empty if there are none. */
export function queryOf (members: Record<string, string | number | undefined>): string {
  const given = Object.entries(members).filter(([, value]) => value !== undefined)
  return given.length === 0 ? '' : `?${given.map(([name, value]) => `${name}=${encodeURIComponent(value!)}`).join('&')}`
}
