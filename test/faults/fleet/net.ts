import { randomInt } from 'node:crypto'
import { run as execute } from '../../../src/embedded/binary.ts'
import { isAlive } from '../../helpers/processes.ts'
import type { Stage } from '../scenario.ts'
import type { Host } from './process.ts'

/** A host of a private network: its processes see only that network. */
export interface NetHost extends Host {
  /** The name of its end of the veth pair. */
  device: string
}

/** Hosts on one switch, 10.x.y.0/24. */
export interface PrivateNet {
  hosts: NetHost[]
  /** This machine itself on that network: it reaches every host, and can be cut off like one. */
  here: NetHost
  /**
   * From now on nothing that `from` sends reaches `to`; the other direction stays. Connections aren't closed and get no error: packets
   * vanish, as with a cut cable.
   */
  cutOneWay (from: readonly NetHost[], to: readonly NetHost[]): Promise<void>
  /** Cuts both directions. */
  cut (some: readonly NetHost[], others: readonly NetHost[]): Promise<void>
  /** Undoes every cut. */
  heal (): Promise<void>
}

/** Undefined if network namespaces can be made; else the reason, for a test to skip with. */
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

/** Makes a network of so many hosts, each in a namespace of its own. @throws with the error of `ip` */
export async function startNet (t: Stage, count: number): Promise<PrivateNet> {
  await removeAbandoned()
  // The bridge has a namespace of its own, so that this machine's firewall doesn't filter its packets.
  const theSwitch = `ah${process.pid}-${++made}`
  const namespaces = Array.from({ length: count }, (_, index) => `${theSwitch}-${index + 1}`)
  t.teardown(async () => {
    // Every veth pair has an end in the bridge's namespace, and is deleted with it.
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

/** A MAC address that no host has: the bridge accepts packets for it, and nobody receives them. */
const nobody = '02:00:00:00:00:01'

/**
 * Gives the sender a permanent neighbour entry with that MAC address, which no ARP reply replaces. So a cut needs only iproute2, and
 * neither side sees an error, as it would from a refusing route or firewall.
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

/** The first three numbers of a subnet to which this machine has only the default route. */
async function unusedNet (): Promise<string> {
  while (true) {
    const net = `10.${randomInt(100, 250)}.${randomInt(256)}`
    const routes = await ip('-4', 'route', 'show', 'to', 'match', `${net}.1`)
    if (routes.split('\n').every(route => route === '' || route.startsWith('default'))) return net
  }
}

/** Removes the namespaces of a killed run. Its processes ended with it. */
async function removeAbandoned (): Promise<void> {
  for (const [name, owner] of (await ip('netns', 'list')).matchAll(/^ah(\d+)-\S+/gm)) {
    if (!isAlive(Number(owner))) await ip('netns', 'del', name).catch(() => {}) // another run may delete it too
  }
}

function inside (namespace: string | undefined): string[] {
  return namespace === undefined ? [] : ['-n', namespace]
}

async function ip (...args: string[]): Promise<string> {
  return (await execute('ip', args)).stdout
}
