import { Unavailable } from '../core/errors.ts'
import type { KeyNames } from './key-names.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Master } from '../redis/masters.ts'
import { tagged } from './replies.ts'
import type { ScriptName } from '../redis/outcomes.ts'
import type { Script, Scripts } from '../redis/scripts.ts'

/** Commands that the service and ioredis call outside scripts. A script's commands need the caller's rights too. */
const always = ['EVALSHA', 'EVAL', 'INFO', 'PING', 'SSUBSCRIBE', 'SUNSUBSCRIBE', 'TIME'] as const
/** The service works without these, with the loss that redis/stale-connections.ts explains. AUTH needs no right. */
export const optionalCommands = ['CLIENT|INFO', 'CLIENT|KILL', 'CLIENT|SETNAME'] as const
const ofCluster = ['ASKING', 'CLUSTER|SLOTS'] as const
const ofDurability = ['WAIT'] as const
/**
 * Only operators run these scripts (cli/), with rights of their own. So a compromised service can't make or revoke
 * keys.
 */
const ofOperators = new Set<ScriptName>([
  'key-create', 'key-list', 'key-change', 'limit-set', 'token-block', 'payload-count'
])

/** These run only where events are on. */
const ofEvents = new Set<ScriptName>(['relay', 'outbox', 'trim', 'feed', 'excerpt', 'webhook-create', 'webhook-list',
  'webhook-change', 'webhook-delete', 'webhook-plan', 'webhook-replay', 'webhook-claim',
  'webhook-tried', 'webhook-deliveries'])

/** The part of the configuration that needs rights of its own. */
export interface Deployment { cluster: boolean, replicas: number, events: boolean }

/** The commands that the user of a service with this configuration needs, in the form that Redis's ACL uses. */
export function neededCommands (scripts: Scripts, { cluster, replicas, events }: Deployment): string[] {
  const own = ownScripts(scripts, events).flatMap(script => called(script).all)
  const all = [...always, ...cluster ? ofCluster : [], ...replicas > 0 ? ofDurability : [], ...own]
  return [...new Set(all)].sort()
}

/** The scripts that the service itself runs. */
function ownScripts (scripts: Scripts, areEventsOn: boolean): Script[] {
  return Object.values(scripts).filter(({ name }) => !ofOperators.has(name) && (areEventsOn || !ofEvents.has(name)))
}

/** The further commands that operators' scripts need. */
export function operatorCommands (scripts: Scripts, setup: Deployment): string[] {
  const needed = new Set(neededCommands(scripts, setup))
  return [...new Set([...ofOperators].flatMap(name => called(scripts[name]).all))].filter(name => !needed.has(name))
    .sort()
}

/** What was found in a script's text, by its digest: a process may have several stores. */
const calledIn = new Map<string, { all: string[], ending: string[] }>()

/** The commands in a script, all and those whose refusal ends it: after the refusal of a `pcall` it goes on. */
function called ({ sha1, source }: Script): { all: string[], ending: string[] } {
  const known = calledIn.get(sha1)
  if (known !== undefined) return known
  // They are literal names: test/lua/headers.test.ts ensures it.
  const calls = [...source.matchAll(/\b(p?)call\('([A-Z]+)'/g)]
  const namesOf = (some: typeof calls) => [...new Set(some.map(([, , name]) => name!))]
  const found = { all: namesOf(calls), ending: namesOf(calls.filter(([, p]) => p === '')) }
  calledIn.set(sha1, found)
  return found
}

/** A user's missing rights, as far as Redis says. */
export interface RightsReply {
  /** Commands that the user may not run. */
  lacking: string[]
  /** Commands that the server doesn't have: it is of another version, or hides them from everyone. */
  missing: string[]
  /** Commands that Redis couldn't be asked about: they may be allowed or not. */
  unknown: string[]
  /** Redis's own messages about the last two; empty if there are none. */
  messages: string
}

/**
 * Checks whether the ACL gives the service's user all rights on a master. If not, no script begins there that would end
 * half way: a handoff could be renamed, and its successor never get into its inbox. Nor is a lease taken, since other
 * replicas may have all rights.
 */
export class RightsCheck {
  readonly #lanes: Lanes
  readonly #script: Script
  readonly #keyNames: KeyNames
  readonly #needed: readonly string[]
  /** The commands that each script needs, except the script of this check. */
  readonly #scripts: ReadonlyMap<Script, ReadonlySet<string>>

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, setup: Deployment) {
    this.#lanes = lanes
    this.#script = scripts.rights
    this.#keyNames = keyNames
    this.#needed = neededCommands(scripts, setup)
    const all = ownScripts(scripts, setup.events)
    const whatAnyNeeds = new Set(all.flatMap(script => called(script).ending))
    this.#scripts = new Map(all.filter(script => script !== this.#script).flatMap(script => {
      const needs = script === scripts.lease ? whatAnyNeeds : new Set(called(script).ending)
      return [script, ...script.whenFull === undefined ? [] : [script.whenFull]].map(one => [one, needs] as const)
    }))
  }

  /** Asks the master of this partition. @throws {Unavailable} */
  async read (master: Master): Promise<RightsReply> {
    const tag = master.tags[0]!
    const reply = await this.#lanes.call({
      script: this.#script,
      tag,
      keys: [],
      texts: this.#texts(tag),
      decode: readRights
    })
      .catch((error: Error) => {
        if (error instanceof Unavailable) throw error
        return { lacking: [], missing: [], unknown: [...this.#needed], messages: error.message }
      })
    this.#refuse(master, reply)
    return reply
  }

  /** Asks on a new connection, on which there are no calls yet. If Redis doesn't say, nothing is refused. */
  async learn (master: Master): Promise<void> {
    // A master without partitions is only taking over slots; any key of the service has the same rights.
    const texts = this.#texts(master.tags[0] ?? '')
    this.#refuse(master, readRights(await master.calls.callBuffer('EVAL', this.#script.source, '0', ...texts)))
  }

  #texts (tag: string): string[] {
    return [this.#needed.join(' '), this.#keyNames.dataSet(tag)]
  }

  #refuse (master: Master, { lacking, missing }: RightsReply): void {
    const refused = [...this.#scripts].flatMap(([script, needs]) => {
      const [denied, unknown] = [lacking, missing].map(names => names.filter(name => needs.has(name)))
      const [why, reason] = unknown!.length > 0 ? [unknown!, 'ERR unknown command'] : [denied!, 'NOPERM']
      return why.length === 0 ? [] : [[script, `${reason}: ${script.name} needs ${why.join(', ')}`] as const]
    })
    master.refused = refused.length === 0 ? undefined : new Map(refused)
  }
}

/** Reads the reply of rights.lua. */
export function readRights (reply: unknown): RightsReply {
  const [, lacking, unknown] = tagged(reply).map(String) as [string, string, string]
  const unanswered = unknown.split('\n').filter(line => line !== '').map(line => {
    const [name = '', ...words] = line.split(' ')
    return { name, words: words.join(' ') }
  })
  const names = (among: typeof unanswered) => among.map(({ name }) => name)
  return {
    lacking: lacking.split(' ').filter(name => name !== ''),
    missing: names(unanswered.filter(isMissing)),
    unknown: names(unanswered.filter(one => !isMissing(one))),
    messages: [...new Set(unanswered.map(({ words }) => words))].join('; '),
  }
}

/** Redis also refuses to answer about a command that it doesn't have. That refusal is an answer. */
function isMissing ({ words }: { words: string }): boolean {
  return /^ERR Invalid command\b/.test(words)
}
