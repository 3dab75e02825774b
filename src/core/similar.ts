/** The name that a client probably meant with a wrong one, for errors. */

/** What other services call these. */
const synonyms: Record<string, readonly string[]> = {
  inbox: ['to'], to: ['inbox'], result: ['output'], handoff_id: ['id']
}

/**
 * The known name that this one resembles: in another style (`requireHuman`), mistyped (`requir_human`), or another word
 * for the same; undefined if there is none.
 */
function similarTo (name: string, known: readonly string[]): string | undefined {
  const other = Object.hasOwn(synonyms, name) ? synonyms[name]!.find(one => known.includes(one)) : undefined
  if (other !== undefined) return other
  const plain = plainly(name)
  let found: string | undefined
  let least = Infinity
  for (const one of known) {
    const wanted = plainly(one)
    const allowed = Math.min(2, Math.floor(wanted.length / 3))
    // Strangers send names, and long ones would take long.
    if (Math.abs(plain.length - wanted.length) > allowed) continue
    const count = editsBetween(plain, wanted)
    if (count > allowed || count >= least) continue
    found = one
    least = count
  }
  return found
}

/** Without what tells styles of names apart. A long name resembles none. */
function plainly (name: string): string {
  return name.length > 64 ? name : name.toLowerCase().replaceAll(/[_-]/g, '')
}

/** How many letters to insert, to leave out, to change or to swap with the next make one of the other. */
function editsBetween (one: string, other: string): number {
  let last: number[] = []
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1]
      let count = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (isSame ? 0 : 1))
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        count = Math.min(count, last[j - 2]! + 1)
      }
      next.push(count)
    }
    last = row
    row = next
  }
  return row[other.length]!
}

/** What is said of an unknown name, and of the one that was probably meant. */
export function unknownOf (name: string, known: readonly string[]): string {
  const meant = similarTo(name, known)
  return meant === undefined ? 'unknown' : `unknown; did you mean ${meant}?`
}
