import { invalid } from '../../core/errors.ts'
import type { Fault } from '../../core/errors.ts'
import type { Members } from '../../core/json.ts'
import { members } from '../../core/members.ts'
import type { MadeMember, Member } from '../../core/members.ts'
import type { PassBody } from '../../core/schemas/handoffs.ts'
import { excerptBytes } from '../lists/excerpt.ts'

/** The options of a pass, as words of its record (lua/lib/record.lua, "word of pass"). */

/** The members that every handoff has. */
const plain: ReadonlySet<string> = new Set(
  Object.entries(members).filter(([, { kept }]) => kept === 'payload' || kept === 'record').map(([name]) => name)
)

/** Does the body have only those? One that isn't known to be plain isn't: it must not be dropped. */
export function isPlainBody (body: PassBody): boolean {
  for (const name in body) {
    if (plain.has(name) || body[name as Member] == null) continue
    if (name !== 'require_human' || body.require_human === true) return false
  }
  return true
}

/** The members that aren't plain, in the API's order. */
const others = Object.entries(members).filter(([name]) => !plain.has(name)) as Array<[Member, typeof members[Member]]>

/**
 * The options, in words of a letter and a value: lua/lib/record.lua, "word of pass".
 * @param given the body's members @param made the words of members that need more than their value; empty for none
 */
export function optionWords (body: PassBody, given: Members, made: Record<MadeMember, string>): string {
  let words = ''
  for (const [name, row] of others) {
    if (row.kept === 'made') words += made[name as MadeMember]
    if (row.kept !== 'word' || body[name] == null) continue
    const values = row.unit.write(body[name], () => given.raw(name)!)
    for (const value of Array.isArray(values) ? values : [values]) words += ` ${row.letter}${value}`
  }
  return words
}

/**
 * The runs that it belongs to: by its own labels, or by its parent's where it has none of that name. It takes over
 * those.
 * @param words those of its options
 */
export function runWords (words: string, ofParent: readonly string[], names: readonly string[]): string {
  let runs = ''
  for (const name of names) {
    const [own] = new RegExp(` j${name.replaceAll('.', '\\.')}:\\S+`).exec(words) ?? []
    const label = own?.slice(2) ?? ofParent.find(label => label.startsWith(`${name}:`))
    if (label !== undefined) runs += `${own === undefined ? ` j${label}` : ''} J${label}`
  }
  return runs
}

/** What bears on the inbox needs one. */
export function faultsWithoutInbox (values: { to?: unknown, priority?: unknown, group?: unknown }): Fault[] {
  if (values.to != null) return []
  return (['priority', 'group'] as const).filter(name => values[name] != null)
    .map(name => ({ pointer: `/${name}`, message: 'needs to' }))
}

/** For people who must approve: how much of the task they see, and the digest of the whole payload. */
export function humanWords (task: Buffer, digest: string, mark: string): string {
  return ` l${excerptBytes(task)} h${digest}${mark === '' ? '' : ` U${mark}`}`
}

/** A pass that came by A2A: the context that its task is of, and which parts the message had (lua/lib/record.lua). */
export interface A2aPass { context: string, parts: string }

/** The label that has it. */
const contextLabel = 'a2a.context'

/** A task is its first attempt. The label is one more than a pass may have. */
export function a2aWords (id: string, a2a: A2aPass | undefined): string {
  return a2a === undefined ? '' : ` j${contextLabel}:${a2a.context} M${id} P${a2a.parts}`
}

/** Others don't give it. @param at pointer to the members @throws {Problem} */
export function refuseContextLabel ({ labels }: { labels?: unknown }, at = ''): void {
  if (labels == null || !Object.hasOwn(labels, contextLabel)) return
  throw invalid({ pointer: `${at}/labels/${contextLabel}`, message: 'is given to what comes by A2A alone' })
}
