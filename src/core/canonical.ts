/**
 * A value's JSON in the one form that the JSON Canonicalization Scheme gives it (RFC 8785). JSON.stringify writes
 * numbers and strings as it asks; members come in the order of their names' UTF-16 code units, as `sort` has them.
 * @throws {TypeError} for what has no such form: a number that isn't finite, half a surrogate pair, what JSON hasn't
 */
export function canonicalJson (value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (typeof value !== 'object' || value === null) return canonicalScalar(value)
  const members = Object.entries(value).filter(([, its]) => its !== undefined)
    .sort(([one], [other]) => one < other ? -1 : 1)
  return `{${members.map(([name, its]) => `${canonicalScalar(name)}:${canonicalJson(its)}`).join()}}`
}

function canonicalScalar (value: unknown): string {
  const isWhole = typeof value === 'number' ? Number.isFinite(value) : !/\p{Surrogate}/u.test(String(value))
  const text = JSON.stringify(value) as string | undefined
  if (!isWhole || text === undefined) throw new TypeError('this has no canonical JSON')
  return text
}
