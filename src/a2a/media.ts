/** Whether a media type is one of those that an agent takes or gives: a mode may have `*` for either half. */
export function matchesAny (type: string, modes: readonly string[]): boolean {
  return modes.some(mode => matches(type, mode) || matches(mode, type))
}

function matches (type: string, mode: string): boolean {
  const [given, wanted] = [type, mode].map(one => one.toLowerCase().split(';')[0]!.trim().split('/'))
  return [0, 1].every(half => wanted![half] === '*' || wanted![half] === given![half])
}
