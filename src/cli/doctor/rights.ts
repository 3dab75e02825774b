import type { Redis } from 'ioredis'
import { loadScripts } from '../../store/scripts.ts'
import type { Finding } from './finding.ts'

/**
 * Redis itself says what this user may do, without doing it. Each argument is a command as it would be asked.
 * What comes back are the numbers of those that it may not.
 */
const check = `#!lua flags=no-writes
local refused = {}
for number, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '%S+') do words[#words + 1] = word end
  if not redis.acl_check_cmd(unpack(words)) then refused[#refused + 1] = number end
end
return refused`

/** What the service runs itself, by whom it is needed. Without the last two it works, and what was cut off may run up to 2 s late. */
const always = (key: string) => [`EVALSHA x 1 ${key}`, 'TIME', 'PING', 'INFO', `SSUBSCRIBE ${key}`, 'SUNSUBSCRIBE']
const withReplicas = ['WAIT 1 1']
const inCluster = ['CLUSTER SLOTS', 'ASKING']
const useful = ['CLIENT INFO', 'CLIENT KILL']

/** Which commands this user lacks, in Redis's own words for them: hset, cluster|slots. */
export interface Rights { user: string, lacking: string[], useful: string[] }

/** @param key one of the service's, for which all of it is to be allowed */
export async function askRights (redis: Redis, key: string, { replicas, cluster }: { replicas: number, cluster: boolean }): Promise<Rights> {
  const needed = [...always(key), ...scriptCommands().map(command => `${command} ${key}`), ...replicas > 0 ? withReplicas : [], ...cluster ? inCluster : []]
  const user = redis.options.username ?? 'default'
  try {
    const refused = new Set(await redis.eval(check, 0, ...needed, ...useful) as number[])
    const lacks = (command: string, number: number) => refused.has(number + 1) ? [nameOf(command)] : []
    return { user, lacking: needed.flatMap(lacks), useful: useful.flatMap((command, number) => lacks(command, needed.length + number)) }
  } catch (error) {
    if (!/^NOPERM/.test((error as Error).message)) throw error
    return { user, lacking: ['eval'], useful: [] }
  }
}

/** Redis counts what a script does as its caller's; each of these has its key first. */
export function scriptCommands (): string[] {
  const sources = Object.values(loadScripts()).map(({ source }) => source)
  return [...new Set(sources.flatMap(source => [...source.matchAll(/redis\.call\('([A-Z]+)'/g)].map(([, name]) => name!)))].sort()
    .filter(name => name !== 'TIME')
}

function nameOf (command: string): string {
  const [first, second] = command.toLowerCase().split(' ')
  return /^(client|cluster)$/.test(first!) ? `${first}|${second}` : first!
}

export function checkRights ({ user, lacking, useful }: Rights, prefix: string): Finding {
  const grant = (commands: readonly string[]) => `ACL SETUSER ${user} ~${prefix}:* &${prefix}:* ${commands.map(command => `+${command}`).join(' ')}`
  const name = 'rights'
  if (lacking.length > 0) {
    const more = lacking[0] === 'eval' ? ', and what else can’t be seen without that' : ''
    return { level: 'error', name, saw: `${user} may not ${lacking.join(', ')} on ${prefix}:*${more}`, set: grant(lacking), why: 'the service needs them' }
  }
  if (useful.length > 0) {
    return { level: 'note', name, saw: `${user} may not ${useful.join(', ')}`, set: grant(useful), why: 'what a broken connection had on its way is ended at once, not by its deadline of 2 s' }
  }
  return { level: 'ok', name, saw: `${user} has all that the service needs` }
}
