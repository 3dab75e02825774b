import { Unavailable } from '../../core/errors.ts'
import type { PayloadKey } from '../../core/payload-keys.ts'
import type { KeyNote } from '../../store/payload-key-notes.ts'
import type { Store } from '../../store/store.ts'
import { unseen } from './server.ts'
import type { Finding } from './server.ts'

type OneKey = KeyNote['keys'][number]

/** By name; the kid is the name where no replica knows that. */
type Kids = (name: string) => string

/**
 * Looks at the payload keys that replicas noted, and those of PAYLOAD_KEYS here.
 * @param scans whether it counts what each of them encrypted, in all of Redis
 */
export async function checkPayloadKeys (
  { payloadKeyNotes, sealedTexts }: Store, own: readonly PayloadKey[], scans: boolean
): Promise<Finding[]> {
  let notes: KeyNote[]
  try {
    notes = await payloadKeyNotes.read()
  } catch (error) {
    return [unseen('the payload keys of the replicas', whyUnseen(error))]
  }
  const known = new Map([...notes.flatMap(({ keys }) => keys), ...own].map(({ name, kid }) => [name, kid]))
  const kids: Kids = name => known.get(name) ?? name
  const findings = [...writers(notes), ...lacking(notes, own, kids)]
  if (!scans) return findings
  try {
    const counts = await sealedTexts.count([...known.keys()].map(name => ` ${name}`).join('') + ' ')
    return [...findings, ...encryptedByEach(counts, notes, own, kids)]
  } catch (error) {
    return [...findings, unseen('what payload keys have encrypted', whyUnseen(error))]
  }
}

function whyUnseen (error: unknown): string {
  if (error instanceof Unavailable || (error as Error).name === 'ReplyError') return (error as Error).message
  throw error
}

const payloadKeysName = 'payload keys'

/** Which key the replicas write with. */
function writers (notes: readonly KeyNote[]): Finding[] {
  const byKid = new Map<string, string[]>()
  for (const { replica, keys: [first] } of notes) {
    if (first !== undefined) byKid.set(first.kid, [...byKid.get(first.kid) ?? [], replica])
  }
  if (byKid.size === 0) return []
  if (byKid.size === 1) {
    const [[kid, replicas]] = [...byKid] as [[string, string[]]]
    return [{ level: 'ok', name: payloadKeysName, saw: `${keyNumbered(replicas.length, 'replica')} with ${kid}` }]
  }
  const saw = [...byKid].sort().map(([kid, replicas]) => `${replicas.sort().join(', ')} with ${kid}`).join('; ')
  return [{
    level: 'note',
    name: payloadKeysName,
    saw: `replicas write with different ones: ${saw}`,
    set: 'the same PAYLOAD_KEYS for all, once each has the new key'
  }]
}

/** Keys that one replica writes with, and others lack. */
function lacking (notes: readonly KeyNote[], own: readonly OneKey[], kids: Kids): Finding[] {
  const written = new Set(notes.flatMap(({ keys }) => keys.slice(0, 1).map(({ name }) => name)))
  const missingIn = (keys: readonly OneKey[]) => [...written].filter(name => !keys.some(key => key.name === name))
    .map(name => keys.some(({ kid }) => kid === kids(name)) ? `${kids(name)} (it has another key of this kid)` : kids(name))
    .sort().join(', ')
  const findings = notes.map(({ replica, keys }): [string, Finding] => [missingIn(keys), {
    level: 'error',
    name: payloadKeysName,
    saw: `${replica} lacks ${missingIn(keys)}, which replicas write with`,
    set: 'that key, behind the first one of its PAYLOAD_KEYS',
    why: 'what others pass can’t be caught there, and waits'
  }])
  const here: [string, Finding] = [missingIn(own), {
    level: 'note',
    name: payloadKeysName,
    saw: `PAYLOAD_KEYS of this command lacks ${missingIn(own)}, which replicas write with`,
    set: 'the service’s PAYLOAD_KEYS',
    why: 'the operator’s commands can’t show what was encrypted with it'
  }]
  return [...findings, here].flatMap(([missing, finding]) => missing === '' ? [] : [finding])
}

/** What each key has encrypted, and whether it can go. */
function encryptedByEach (
  counts: ReadonlyMap<string, number>, notes: readonly KeyNote[], own: readonly OneKey[], kids: Kids
): Finding[] {
  const held = new Set([...notes.flatMap(({ keys }) => keys), ...own].map(({ name }) => name))
  const written = new Set(notes.map(({ keys: [first] }) => first?.name))
  const names = [...new Set([...held, ...counts.keys()])].sort((one, other) => kids(one) < kids(other) ? -1 : 1)
  if (names.length === 0) return [{ level: 'ok', name: payloadKeysName, saw: 'nothing is encrypted' }]
  return names.map((name): Finding => {
    const [kid, texts] = [kids(name), counts.get(name) ?? 0]
    const saw = `${kid}: ${keyNumbered(texts, 'text')} encrypted with it`
    const missesAt = notes.filter(({ keys }) => !keys.some(key => key.name === name)).map(({ replica }) => replica)
    if (texts > 0 && notes.length > 0 && missesAt.length > 0) {
      const who = missesAt.length === notes.length ? 'no replica has it' : `${missesAt.sort().join(', ')} lacks it`
      return {
        level: 'error',
        name: payloadKeysName,
        saw: `${saw}, and ${who}`,
        set: 'the key, at the end of every replica’s PAYLOAD_KEYS',
        why: 'these texts can’t be read there; what waits expires at its deadline'
      }
    }
    if (texts > 0 || written.has(name)) return { level: 'ok', name: payloadKeysName, saw }
    return { level: 'note', name: payloadKeysName, saw: `${saw} any more, and no replica writes with it: it can go` }
  })
}

function keyNumbered (number: number, what: string): string {
  const words = `${number.toLocaleString('en')} ${what}${number === 1 ? '' : 's'}`
  return what === 'replica' ? `${words} ${number === 1 ? 'writes' : 'write'}` : words
}
