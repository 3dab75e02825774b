/** Who puts load on a service, and the keys that it must know them by. */

/** `agent` is 'tenant/agent', as a history has it. */
export interface Key { tenant: string, agent: string, secret: string }

const tenants = ['north', 'east', 'south', 'west']

function keysOf (role: string, perTenant: number): Key[] {
  return Array.from({ length: perTenant * tenants.length }, (_, index) => {
    const tenant = tenants[index % tenants.length] as string
    const name = `${role}-${Math.floor(index / tenants.length)}`
    return { tenant, agent: `${tenant}/${name}`, secret: `the-key-of-${tenant}-${name}` }
  })
}

export const agentKeys: readonly Key[] = keysOf('agent', 8)
/** People; they also read what it came to in the end. */
export const approverKeys: readonly Key[] = keysOf('person', 2)

/** Settings that a service under this load must be started with. */
export const loadSettings = { API_KEYS: settingOf(agentKeys), APPROVER_KEYS: settingOf(approverKeys) }

function settingOf (keys: readonly Key[]): string {
  return keys.map(({ agent, secret }) => `${agent}:${secret}`).join(',')
}

/** Those of one tenant. */
export function within (keys: readonly Key[], tenant: string): Key[] {
  return keys.filter(key => key.tenant === tenant)
}
