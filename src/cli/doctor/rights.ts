import type { Redis } from 'ioredis'
import { neededCommands, operatorCommands, readRights, optionalCommands } from '../../store/rights.ts'
import type { RightsReply, Deployment } from '../../store/rights.ts'
import { loadScripts } from '../../redis/scripts.ts'
import { testedServers } from '../../redis/connect.ts'
import { unseen } from './server.ts'
import type { Finding } from './server.ts'

/**
 * The user's rights, with commands named as in ACL SETUSER: hset, cluster|slots. The service works without
 * `optionalCommands` and `forKeys`, and without `forEvents` where it has no EVENTS_RETENTION.
 */
interface RightsReport extends RightsReply {
  user: string
  optionalCommands: string[]
  forKeys: string[]
  forEvents: string[]
}

/** Uses the service's own readiness check. @param key a key of the service, on which all commands must be allowed */
export async function askRights (redis: Redis, key: string, setup: Deployment): Promise<RightsReport> {
  const scripts = loadScripts({ events: setup.events ? 'outbox' : undefined })
  const forKeys = operatorCommands(scripts, setup)
  const needed = neededCommands(scripts, setup)
  // This command may not have the service's EVENTS_RETENTION.
  const forEvents = neededCommands(loadScripts({ events: 'outbox' }), { ...setup, events: true })
    .filter(command => !needed.includes(command) && !forKeys.includes(command))
  const all = [...needed, ...optionalCommands, ...forKeys, ...forEvents]
  const {
    lacking, missing, unknown, messages
  } = await redis.eval(scripts.rights.source, 0, all.join(' '), key).then(readRights, (error: Error): RightsReply => {
    const refused = error.message.startsWith('NOPERM')
    return { lacking: refused ? ['EVAL'] : [], missing: [], unknown: refused ? [] : all, messages: error.message }
  })
  const user = redis.options.username ?? 'default'
  return {
    user,
    lacking: lower(lacking),
    missing: lower(missing),
    unknown: lower(unknown),
    messages,
    optionalCommands: lower(optionalCommands),
    forKeys: lower(forKeys),
    forEvents: lower(forEvents)
  }
}

function lower (names: readonly string[]): string[] {
  return names.map(name => name.toLowerCase())
}

export function checkRights (rights: RightsReport, prefix: string): Finding[] {
  const { user, unknown, messages } = rights
  const found = checkLacking(rights, prefix) ?? checkMissing(rights)
  const unchecked = unknown.length === 0 ? [] : [unseen(`whether ${user} may ${unknown.join(', ')}`, messages)]
  if (found !== null) return [found, ...unchecked]
  return unchecked.length > 0 ? unchecked : [{ level: 'ok', name, saw: `${user} has all rights that the service needs` }]
}

const name = 'rights'

function checkLacking (rights: RightsReport, prefix: string): Finding | null {
  const { user, lacking } = rights
  const needed = lacking.filter(command => !isDispensable(rights, command))
  const grant = (
    commands: readonly string[]
  ) => `ACL SETUSER ${user} ~${prefix}:* &${prefix}:* ${commands.map(command => `+${command}`).join(' ')}`
  if (needed.length > 0) {
    const more = needed[0] === 'eval' ? '; without it, doctor can’t see what else is missing' : ''
    return {
      level: 'error',
      name,
      saw: `${user} may not ${needed.join(', ')} on ${prefix}:*${more}`,
      set: grant(needed),
      why: 'the service needs them'
    }
  }
  for (const [kind, why] of dispensable) {
    const some = lacking.filter(command => rights[kind].includes(command))
    if (some.length > 0) {
      return { level: 'note', name, saw: `${user} may not ${some.join(', ')}`, set: grant(some), why }
    }
  }
  return null
}

/** What the service works without, the most useful first, and why it is granted all the same. */
const dispensable = [
  ['optionalCommands',
    'with it, commands left on a broken connection are stopped at once; without it, by their deadline of 2 s'],
  ['forEvents', 'with EVENTS_RETENTION the service needs them, and isn’t ready without'],
  ['forKeys', 'creating, rotating and revoking keys needs it; the service doesn’t'],
] as const

function isDispensable (rights: RightsReport, command: string): boolean {
  return dispensable.some(([kind]) => rights[kind].includes(command))
}

function checkMissing (rights: RightsReport): Finding | null {
  const { missing, messages } = rights
  if (missing.length === 0) return null
  const worksWithout = missing.every(command => isDispensable(rights, command))
  return {
    level: worksWithout ? 'note' : 'error',
    name: 'commands',
    saw: `Redis does not have ${missing.join(', ')}: ${messages}`,
    set: `a tested server (${testedServers.join(', ')}) without renamed commands`,
    why: worksWithout ? 'the service works without them, but not as well' : 'the service needs them',
  }
}
