import { randomInt } from 'node:crypto'
import { run as execute } from '../../../src/embedded/programs.ts'
import { isAlive } from '../../helpers/processes.ts'
import type { Stage } from '../scenario.ts'
import type { Host } from './process.ts'

/** A host of a private net: processes that are run on it have that net alone. */
export interface NetHost extends Host {
  /** As ip-link names its end of the cable. */
  device: string
}

/** Hosts on one switch, 10.x.y.0/24. */
export interface PrivateNet {
  hosts: NetHost[]
  /** This machine itself on that net: whoever runs here reaches every host, and can be cut off like one. */
  here: NetHost
  /**
   * From now on nothing of what `from` sends comes to `to`; the other way stays as it is. Connections aren't closed, and nobody
   * is told: packets vanish, as they do where a cable is cut.
   */
  cutOneWay (from: readonly NetHost[], to: readonly NetHost[]): Promise<void>
  /** Both ways. */
  cut (some: readonly NetHost[], others: readonly NetHost[]): Promise<void>
  /** Undoes every cut. */
  heal (): Promise<void>
}

/** Undefined where network namespaces can be made; else why not, for a test to skip with. */
export async function whyNoNamespaces (): Promise<string | undefined> {
  const name = `ah${process.pid}-try`
  try {
    await ip('netns', 'add', name)
    await ip('-n', name, 'link', 'add', 'switch', 'type', 'bridge')
    await ip('-n', name, 'link', 'add', 'cable', 'type', 'veth', 'peer', 'name', 'plug')
  } catch (error) {
    return `no network namespaces here (root on Linux can make them): ${(error as Error).message.trimEnd()}`
  } finally {
    await ip('netns', 'del', name).catch(() => {})
  }
}

let made = 0

/** Makes a net of so many hosts, each in a namespace of its own. @throws what `ip` says where it may not */
export async function startNet (t: Stage, count: number): Promise<PrivateNet> {
  await removeAbandoned()
  // The switch has a namespace to itself, so that no firewall of this machine has a say in what passes it.
  const theSwitch = `ah${process.pid}-${++made}`
  const namespaces = Array.from({ length: count }, (_, index) => `${theSwitch}-${index + 1}`)
  t.teardown(async () => {
    // Every cable has an end in the switch, and goes with it.
    for (const namespace of [theSwitch, ...namespaces]) await ip('netns', 'del', namespace).catch(() => {})
  })
  const net = await unusedNet()
  const here: NetHost = { address: `${net}.254`, device: theSwitch }
  const hosts = namespaces.map((namespace, index): NetHost => ({ address: `${net}.${index + 1}`, namespace, device: 'eth0' }))
  await ip('netns', 'add', theSwitch)
  await ip('-n', theSwitch, 'link', 'add', 'switch', 'up', 'type', 'bridge')
  for (const namespace of namespaces) {
    await ip('netns', 'add', namespace)
    await ip('-n', namespace, 'link', 'set', 'lo', 'up')
  }
  for (const [index, host] of [here, ...hosts].entries()) await plugIn(host, theSwitch, `port${index}`)
  return { hosts, here, cut, cutOneWay, heal: () => heal([here, ...hosts]) }
}

async function plugIn ({ address, namespace, device }: NetHost, theSwitch: string, port: string): Promise<void> {
  const where = namespace === undefined ? String(process.pid) : namespace
  await ip('-n', theSwitch, 'link', 'add', port, 'up', 'master', 'switch', 'type', 'veth', 'peer', 'name', device, 'netns', where)
  await ip(...inside(namespace), 'addr', 'add', `${address}/24`, 'dev', device)
  await ip(...inside(namespace), 'link', 'set', device, 'up')
}

/** An address of Ethernet that none of the hosts has: the switch takes a packet for it, and nobody picks it up. */
const nobody = '02:00:00:00:00:01'

/**
 * The sender is told that the other has the address of nobody: a permanent entry, which no answer to a question of who has it
 * (ARP) replaces. So a cut needs iproute2 alone, and neither side sees an error as it would of a route or a firewall that refuses.
 */
async function cutOneWay (from: readonly NetHost[], to: readonly NetHost[]): Promise<void> {
  for (const { namespace, device, address } of from) {
    for (const other of to) {
      if (other.address !== address) await ip(...inside(namespace), 'neigh', 'replace', other.address, 'lladdr', nobody, 'nud', 'permanent', 'dev', device)
    }
  }
}

async function cut (some: readonly NetHost[], others: readonly NetHost[]): Promise<void> {
  await Promise.all([cutOneWay(some, others), cutOneWay(others, some)])
}

async function heal (everyone: readonly NetHost[]): Promise<void> {
  await Promise.all(everyone.map(({ namespace, device }) => ip(...inside(namespace), 'neigh', 'flush', 'dev', device, 'nud', 'permanent')))
}

/** The first three numbers of a net that this machine has no way to yet but the general one. */
async function unusedNet (): Promise<string> {
  while (true) {
    const net = `10.${randomInt(100, 250)}.${randomInt(256)}`
    const routes = await ip('-4', 'route', 'show', 'to', 'match', `${net}.1`)
    if (routes.split('\n').every(route => route === '' || route.startsWith('default'))) return net
  }
}

/** What a run that was killed has left. Its processes ended with it. */
async function removeAbandoned (): Promise<void> {
  for (const [name, owner] of (await ip('netns', 'list')).matchAll(/^ah(\d+)-\S+/gm)) {
    if (!isAlive(Number(owner))) await ip('netns', 'del', name).catch(() => {}) // another run may be at it too
  }
}

function inside (namespace: string | undefined): string[] {
  return namespace === undefined ? [] : ['-n', namespace]
}

async function ip (...args: string[]): Promise<string> {
  return (await execute('ip', args)).stdout
}
