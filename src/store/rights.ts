import type { KeyNames } from './key-names.ts'
import { Unavailable } from '../redis/lanes.ts'
import type { Lanes } from '../redis/lanes.ts'
import { tagged } from './replies.ts'
import type { Script, ScriptName, Scripts } from '../redis/scripts.ts'

/** Commands that the service asks itself, with those of ioredis; what is in `scripts` counts for their caller as well. */
const always = ['EVALSHA', 'EVAL', 'INFO', 'PING', 'SSUBSCRIBE', 'SUNSUBSCRIBE', 'TIME'] as const
/** Without these it serves all the same: redis/stale-connections.ts says what is lost. AUTH needs no right. */
export const optionalCommands = ['CLIENT|INFO', 'CLIENT|KILL', 'CLIENT|SETNAME'] as const
const ofCluster = ['ASKING', 'CLUSTER|SLOTS'] as const
const ofDurability = ['WAIT'] as const
/** Whoever makes and revokes keys (cli/) runs these with rights of their own, so that a service that was taken over can't. */
const ofOperators = new Set<ScriptName>(['key-create', 'key-list', 'key-rotate', 'key-revoke'])

/** These run only where events are on. */
const ofEvents = new Set<ScriptName>(['relay', 'outbox', 'trim', 'feed', 'webhook-create', 'webhook-list', 'webhook-rotate', 'webhook-enable', 'webhook-delete', 'webhook-plan', 'webhook-claim',
  'webhook-tried', 'webhook-deliveries'])

/** What a service is set up for, as far as it takes rights of its own. */
export interface Setup { cluster: boolean, replicas: number, events: boolean }

/** The commands that a user must be allowed for a service that is set up like this, in Redis's own form for rights. */
export function neededCommands (scripts: Scripts, { cluster, replicas, events }: Setup): string[] {
  const own = Object.values(scripts).filter(({ name }) => !ofOperators.has(name) && (events || !ofEvents.has(name)))
  const all = [...always, ...cluster ? ofCluster : [], ...replicas > 0 ? ofDurability : [], ...own.flatMap(commandsIn)]
  return [...new Set(all)].sort()
}

/** What the scripts that only operators run take besides. */
export function operatorCommands (scripts: Scripts, setup: Setup): string[] {
  const needed = new Set(neededCommands(scripts, setup))
  return [...new Set([...ofOperators].flatMap(name => commandsIn(scripts[name])))].filter(name => !needed.has(name)).sort()
}

/** What a script calls: each by its name, which test/lua/headers holds it to. */
function commandsIn ({ source }: Script): string[] {
  return [...source.matchAll(/redis\.call\('([A-Z]+)'/g)].map(([, name]) => name as string)
}

/** What a user may do, as far as Redis tells. */
export interface RightsTold {
  /** What it may not run. */
  lacking: string[]
  /** What the server doesn't have: it is of another version, or hides it from everybody. */
  missing: string[]
  /** What couldn't be asked about, and so may be allowed as well as not. */
  untold: string[]
  /** Redis's own words of what is missing, or couldn't be asked; empty where there is nothing. */
  said: string
}

/** Whether a master's user (ACL) may do what the service does there. */
export class Rights {
  readonly #lanes: Lanes
  readonly #script: Script
  readonly #keyNames: KeyNames
  readonly #needed: readonly string[]

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, setup: Setup) {
    this.#lanes = lanes
    this.#script = scripts.rights
    this.#keyNames = keyNames
    this.#needed = neededCommands(scripts, setup)
  }

  /** Asks the master of this partition. @throws {Unavailable} */
  ask (tag: string, replica: string): Promise<RightsTold> {
    return this.#lanes.call({ script: this.#script, tag, keys: [], texts: [this.#needed.join(' '), this.#keyNames.ready(tag, replica)], decode: readRights })
      .catch((error: Error) => {
        if (error instanceof Unavailable) throw error
        return { lacking: [], missing: [], untold: [...this.#needed], said: error.message }
      })
  }
}

/** The reply of rights.lua. */
export function readRights (reply: unknown): RightsTold {
  const [, lacking, untold] = tagged(reply).map(String) as [string, string, string]
  const unanswered = untold.split('\n').filter(line => line !== '').map(line => {
    const [name = '', ...words] = line.split(' ')
    return { name, words: words.join(' ') }
  })
  const names = (among: typeof unanswered) => among.map(({ name }) => name)
  return {
    lacking: lacking.split(' ').filter(name => name !== ''),
    missing: names(unanswered.filter(isMissing)),
    untold: names(unanswered.filter(one => !isMissing(one))),
    said: [...new Set(unanswered.map(({ words }) => words))].join('; '),
  }
}

/** Redis refuses to tell of a command that it doesn't have, too: that is an answer. */
function isMissing ({ words }: { words: string }): boolean {
  return /^ERR Invalid command\b/.test(words)
}
