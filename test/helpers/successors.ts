import { createHash } from 'node:crypto'
import { lifetimes } from './scripts.ts'
import { id as first } from './states.ts'
import type { Hash, State } from './states.ts'

/** What a successor is, said once more than in lua/lib/successor.lua: tests hold that to this. */

/** Its id: of its predecessor's partition, and SHA-1 of that one's id and moment. */
export function idBehind (id: string, created: number): string {
  return id.slice(0, 3) + createHash('sha1').update(`${id} ${created}`).digest().toString('base64url', 0, 16)
}

/** What ends an attempt: its status, what field x has more, until when its key stays, what is told with it, and how long the next one waits; null for none. */
export interface End { status: string, words: string, expires: number, e?: string, pause: number | null }

/** An attempt as it lies when it has ended, and its successor with it where there is one. */
export function endedBy (state: State, { status, words, expires, e, pause }: End, id = first): State {
  const { hash, now } = state
  const { s, p, t, r, x = '', ...kept } = hash!
  const ended = { ...kept, ...e === undefined ? {} : { e }, s: s.replace(/^(2:)?\w+/, `2:${status}`) }
  const itsSchema = r === undefined ? {} : { r }
  if (pause === null) return { now, hash: { ...ended, ...p === undefined ? {} : { p }, ...itsSchema, x: x + words }, expires }
  const [, approval, created, expiresAt, passedBy, token] = s.split(' ')
  const word = (letter: string) => new RegExp(` ${letter}(\\d+)`).exec(x)?.[1]
  const attempt = Number(word('n') ?? 1) + 1
  const expiresIn = Number(expiresAt) - Number(attempt > 2 ? word('a') ?? created : created)
  const until = now + pause + expiresIn
  const trace = token!.includes('/') ? token!.slice(token!.indexOf('/')) : ''
  const passed = (x.match(/ \S+/g) ?? []).filter(it => /^ [wbmdsprgctu]/.test(it)).join('')
  const next: Hash = {
    s: `2:pending ${approval} ${now} ${until} ${passedBy} -${trace}`,
    x: ` n${attempt} o${id}${pause > 0 ? ` a${now + pause}` : ''}${passed}`,
    p: p!,
    ...hash!.d === undefined ? {} : { d: hash!.d },
    ...hash!.h === undefined ? {} : { h: hash!.h },
    ...itsSchema,
  }
  return {
    now,
    hash: { ...ended, ...itsSchema, x: `${x}${words} i${idBehind(id, Number(created))}` },
    expires,
    next: { hash: next, expires: until + lifetimes.retention, due: until },
  }
}

/** How long the attempt behind it waits where it is tried again by itself; null where it isn't. */
export function pauseBehind ({ hash }: State): number | null {
  const word = (letter: string) => new RegExp(` ${letter}(\\d+)`).exec(hash!.x ?? '')?.[1]
  const attempt = Number(word('n') ?? 1)
  if (word('q') !== undefined || attempt >= Number(word('m') ?? 1)) return null
  return Math.min(3_600_000, Number(word('d') ?? 1000) * 2 ** (attempt - 1))
}
