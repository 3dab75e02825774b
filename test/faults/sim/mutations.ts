import type { ScriptCall } from '../../../src/redis/call.ts'
import { SeveralCalls } from '../../../src/redis/together.ts'
import type { ScriptName } from '../../../src/redis/outcomes.ts'
import type { Connection } from './connection.ts'
import { luaMutations } from './lua-mutations.ts'
import type { Mutation } from './world.ts'

/** A call's arguments with another token. */
const withToken: Partial<Record<ScriptName, (texts: readonly string[], token: string) => string[]>> = {
  pass: ([words, ...rest], token) => [`${words!.split(' ')[0]} ${token}`, ...rest],
  catch: ([words, ...rest], token) => [`${words!.split(' ')[0]} ${token}`, ...rest],
  done: ([agent, , ...rest], token) => [agent!, token, ...rest],
  decide: ([verdict, , ...rest], token) => [verdict!, token, ...rest],
}
let fresh = 0

/** Each removes something that a guarantee needs; the simulator must notice. */
export const mutations: readonly Mutation[] = [
  ...luaMutations,
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
      const asked = new WeakSet<ScriptCall>()
      return (command: ScriptCall | SeveralCalls) => {
        for (const call of command instanceof SeveralCalls ? command.calls : [command]) {
          const { script: { name }, texts } = call.request
          if (asked.has(call) && name in withToken) Object.assign(call.request, { texts: withToken[name]!(texts, `fresh-${fresh++}`) })
          asked.add(call)
        }
        send(command)
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
  {
    name: 'no ASKING: a call that was sent on is sent like any other',
    shows: 'in a Cluster',
    connection: connection => change(connection, 'asking', () => () => Promise.resolve('OK')),
  },
  { name: 'a bare failover while one of two replicas is enough', hasty: true },
  { name: 'no round of the relay: what a replica that died had left stays', noRound: true, shows: 'in feeds' },
]

function change<Name extends 'wait' | 'eval' | 'time' | 'call' | 'sendCommand' | 'asking'> (connection: Connection, name: Name, to: (before: Connection[Name]) => Connection[Name]): void {
  connection[name] = to(connection[name].bind(connection) as Connection[Name])
}
