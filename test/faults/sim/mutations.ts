import type { Call } from '../../../src/redis/call.ts'
import type { Connection } from './connection.ts'
import type { Database, Hash } from './database.ts'
import type { Modelled, Script } from './scripts.ts'
import type { Mutation } from './world.ts'

const withToken = new Set<Modelled>(['pass', 'catch', 'done', 'approve', 'reject'])
let fresh = 0

/** Each removes something that a guarantee needs; the simulator must notice. */
export const mutations: readonly Mutation[] = [
  {
    name: 'no token: a script never recognises its own operation',
    script: (name, script) => withToken.has(name)
      ? (db, now, keys, [deadline, , ...args]) => script(db, now, keys, [deadline as string, `fresh-${fresh++}`, ...args])
      : script,
  },
  {
    name: 'no deadline: a script runs however late it is',
    script: (name, script) => name === 'status' ? script : (db, now, keys, [, ...args]) => script(db, now, keys, ['9999999999999', ...args]),
  },
  {
    name: 'no expiry check: what is over can still be caught',
    script: (name, script) => name === 'catch' ? withoutExpiry(script) : script,
  },
  {
    name: 'no from-state: a catch takes what another has',
    script: (name, script) => name === 'catch' ? withoutFromState(script) : script,
  },
  {
    name: 'no WAIT: a group is acknowledged without its replicas',
    connection: connection => change(connection, 'wait', wait => (replicas: number, patience: number) => wait(replicas, patience).then(count => Math.max(count, replicas))),
  },
  {
    name: 'no barrier: a group that only read has nothing to wait for',
    connection: connection => change(connection, 'eval', () => () => Promise.resolve(null)),
  },
  { name: 'no durability: a master’s word is enough where it may be replaced', replicas: () => 0 },
  {
    name: 'a fresh token each time a call is asked again',
    connection: connection => change(connection, 'sendCommand', send => {
      const asked = new WeakSet<Call>()
      return (call: Call) => {
        const { script: { name }, texts } = call.asked
        if (asked.has(call) && withToken.has(name as Modelled)) Object.assign(call.asked, { texts: [`fresh-${fresh++}`, ...texts.slice(1)] })
        asked.add(call)
        send(call)
      }
    }),
  },
  {
    name: 'a clock read 5 s ahead: every deadline is too late',
    connection: connection => change(connection, 'time', time => () => time().then(([seconds, rest]): [string, string] => [String(Number(seconds) + 5), rest])),
  },
  {
    name: 'strays: a former connection’s bytes may arrive after those of the next',
    connection: connection => change(connection, 'call', call => (command, what, ...args) => what === 'KILL' ? Promise.resolve(0) : call(command, what, ...args)),
  },
  { name: 'a bare failover while one of two replicas is enough', hasty: true },
]

function change<Name extends 'wait' | 'eval' | 'time' | 'call' | 'sendCommand'> (connection: Connection, name: Name, to: (before: Connection[Name]) => Connection[Name]): void {
  connection[name] = to(connection[name].bind(connection) as Connection[Name])
}

function withoutExpiry (script: Script): Script {
  return (db, now, keys, args) => {
    const key = keys[0] as string
    const words = db.hash(key)?.s.split(' ')
    if (words === undefined || words[0] !== 'pending' || now < Number(words[3])) return script(db, now, keys, args)
    const expires = words[3] as string
    words[3] = String(now + 1)
    quietly(db, key, words)
    const reply = script(db, now, keys, args)
    const after = (db.hash(key) as Hash).s.split(' ')
    after[3] = expires
    quietly(db, key, after)
    return reply
  }
}

function withoutFromState (script: Script): Script {
  return (db, now, keys, args) => {
    const key = keys[0] as string
    const words = db.hash(key)?.s.split(' ')
    // To everybody except its catcher it looks pending.
    if (words?.[0] === 'caught' && words[9] !== args[1]) quietly(db, key, ['pending', ...words.slice(1, 6)])
    return script(db, now, keys, args)
  }
}

function quietly (db: Database, key: string, words: string[]): void {
  db.set(key, { ...db.hash(key) as Hash, s: words.join(' ') })
}
