import { createHash } from 'node:crypto'
import { lifetimes } from './scripts.ts'
import { id as first } from './states.ts'
import type { Hash, State } from './states.ts'

/** A second definition of a successor, against which tests check lua/lib/successor.lua. */

/** Its id: the predecessor's tag, then SHA-1 of the predecessor's id and time. */
export function idBehind (id: string, created: number): string {
  return id.slice(0, 3) + createHash('sha1').update(`${id} ${created}`).digest().toString('base64url', 0, 16)
}

/** How an attempt ends: its status, additions to field x, until when its key stays, its text, and the successor's delay; null for no successor. */
export interface End { status: string, words: string, expires: number, e?: string, pause: number | null }

/** An ended attempt as Redis stores it, with its successor if there is one. */
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

/** The successor's delay if one is made automatically; null if none is. */
export function pauseBehind ({ hash }: State): number | null {
  const word = (letter: string) => new RegExp(` ${letter}(\\d+)`).exec(hash!.x ?? '')?.[1]
  const attempt = Number(word('n') ?? 1)
  if (word('q') !== undefined || attempt >= Number(word('m') ?? 1)) return null
  return Math.min(3_600_000, Number(word('d') ?? 1000) * 2 ** (attempt - 1))
}
