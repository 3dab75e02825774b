import type { Redis } from 'ioredis'
import { keptLength } from '../src/handoff/excerpt.ts'
import { cutMembers } from '../src/handoff/json.ts'
import { digestOf } from '../src/handoff/options.ts'
import { joinPayload } from '../src/handoff/payload.ts'
import { homeTag, randomHomeId, randomId, randomToken, tagOf } from '../src/handoff/id.ts'
import { KeyNames, memberOf } from '../src/store/key-names.ts'
import { loadScripts } from '../src/redis/scripts.ts'
import type { Script } from '../src/redis/scripts.ts'
import { passBody } from './load.ts'

export const tenant = 'default'
const keys = new KeyNames('handoff')
const scripts = loadScripts()
const members = cutMembers(Buffer.from(passBody))
const payload = joinPayload(members)
/** What pass is told of one that a person is to approve (lua/pass.lua). */
const forApproval = ` l${keptLength(members.raw('task') as Buffer)} h${digestOf(payload)}`
const day = '86400000'
const callsPerPipeline = 200

/** Makes this many handoffs that an agent has caught, with the service's own scripts. @returns their ids */
export async function makeCaught (redis: Redis, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, randomId)
  await callForEach(redis, scripts.pass, 'passed', ids, id => [live(id), passArguments(id)])
  await callForEach(redis, scripts.catch, 'caught', ids, id => [live(id), [later(), randomToken(), 'catcher', day, day, memberOf(tenant, id), '']])
  return ids
}

/** Makes this many handoffs that wait for a person. */
export async function makeWaiting (redis: Redis, count: number): Promise<void> {
  const waiting = keys.waiting(homeTag(tenant), tenant)
  const ids = Array.from({ length: count }, () => randomHomeId(tenant))
  await callForEach(redis, scripts.pass, 'passed', ids, id => [[...live(id), waiting], passArguments(id, forApproval)])
}

function live (id: string): string[] {
  return [keys.handoff(tagOf(id), memberOf(tenant, id)), keys.due(tagOf(id))]
}

function passArguments (id: string, options = ''): Array<string | Buffer> {
  return [later(), '-', 'passer', day, day, memberOf(tenant, id), options, payload]
}

/** A deadline that a call can't miss. */
function later (): string {
  return String(Date.now() + 60_000)
}

async function callForEach (redis: Redis, script: Script, expected: string, ids: readonly string[],
  call: (id: string) => [keys: string[], args: Array<string | Buffer>]): Promise<void> {
  await redis.script('LOAD', script.source)
  for (let at = 0; at < ids.length; at += callsPerPipeline) {
    const pipeline = redis.pipeline()
    for (const id of ids.slice(at, at + callsPerPipeline)) {
      const [keys, args] = call(id)
      pipeline.evalsha(script.sha1, keys.length, ...keys, ...args)
    }
    for (const [error, reply] of await pipeline.exec() ?? []) {
      const [outcome] = (reply ?? []) as unknown[]
      if (error !== null || outcome !== expected) throw error ?? new Error(`expected ${expected}, got ${String(outcome)}`)
    }
  }
}
