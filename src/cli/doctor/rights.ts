import type { Redis } from 'ioredis'
import { neededCommands, operatorCommands, readLacking, welcome } from '../../store/rights.ts'
import type { Setup } from '../../store/rights.ts'
import { loadScripts } from '../../store/scripts.ts'
import type { Finding } from './finding.ts'

/** Which commands this user lacks, in the words of ACL SETUSER: hset, cluster|slots. The service works without `welcome` and `forKeys`. */
export interface Rights { user: string, lacking: string[], welcome: string[], forKeys: string[] }

/** Asks as the service does, whose readiness tells the same. @param key one of the service's, for which all of it is to be allowed */
export async function askRights (redis: Redis, key: string, setup: Setup): Promise<Rights> {
  const scripts = loadScripts()
  const user = redis.options.username ?? 'default'
  const lacking = async (commands: readonly string[]) =>
    readLacking(await redis.eval(scripts.rights.source, 0, commands.join(' '), key)).map(name => name.toLowerCase())
  try {
    const [needed, ofUse, forKeys] = [neededCommands(scripts, setup), welcome, operatorCommands(scripts, setup)]
    return { user, lacking: await lacking(needed), welcome: await lacking(ofUse), forKeys: await lacking(forKeys) }
  } catch (error) {
    if (!/^NOPERM/.test((error as Error).message)) throw error
    return { user, lacking: ['eval'], welcome: [], forKeys: [] }
  }
}

export function checkRights ({ user, lacking, welcome, forKeys }: Rights, prefix: string): Finding {
  const grant = (commands: readonly string[]) => `ACL SETUSER ${user} ~${prefix}:* &${prefix}:* ${commands.map(command => `+${command}`).join(' ')}`
  const name = 'rights'
  if (lacking.length > 0) {
    const more = lacking[0] === 'eval' ? ', and what else can’t be seen without that' : ''
    return { level: 'error', name, saw: `${user} may not ${lacking.join(', ')} on ${prefix}:*${more}`, set: grant(lacking), why: 'the service needs them' }
  }
  if (welcome.length > 0) {
    return { level: 'note', name, saw: `${user} may not ${welcome.join(', ')}`, set: grant(welcome), why: 'what a broken connection had on its way is ended at once, not by its deadline of 2 s' }
  }
  if (forKeys.length > 0) {
    return { level: 'note', name, saw: `${user} may not ${forKeys.join(', ')}`, set: grant(forKeys), why: 'who makes, rotates and revokes keys needs it; the service doesn’t' }
  }
  return { level: 'ok', name, saw: `${user} has all that the service needs` }
}
