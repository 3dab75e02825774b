/** The agents that put load on a service, and their keys. */

/** `agent` is 'tenant/agent', as in a history. */
export interface Key { tenant: string, agent: string, secret: string }

export const tenants = ['north', 'east', 'south', 'west']

function keysOf (role: string, perTenant: number): Key[] {
  return Array.from({ length: perTenant * tenants.length }, (_, index) => {
    const tenant = tenants[index % tenants.length] as string
    const name = `${role}-${Math.floor(index / tenants.length)}`
    return { tenant, agent: `${tenant}/${name}`, secret: `the-key-of-${tenant}-${name}` }
  })
}

export const agentKeys: readonly Key[] = keysOf('agent', 8)
/** People; they also read the final status. */
export const approverKeys: readonly Key[] = keysOf('person', 2)
export const operatorKeys: readonly Key[] = keysOf('operator', 1)

/** What goes beside (everything/load.ts), in a tenant of its own. */
const ofBeside = (name: string): Key => ({ tenant: 'beside', agent: `beside/${name}`, secret: `the-key-of-beside-${name}` })
export const besideKeys = { passer: ofBeside('passer'), worker: ofBeside('worker'), operator: ofBeside('operator') }

const loadSettings = {
  API_KEYS: settingOf([...agentKeys, besideKeys.passer, besideKeys.worker]),
  APPROVER_KEYS: settingOf(approverKeys),
  OPERATOR_KEYS: settingOf([...operatorKeys, besideKeys.operator]),
}
/** The service's settings under load, with events and webhooks, which a trial holds to what happened. */
export const eventSettings = {
  ...loadSettings,
  BASE_URL: 'http://service.example',
  EVENTS_RETENTION: '86400',
  WEBHOOK_SECRET: 'the-secret-of-all-webhooks-under-load',
  WEBHOOK_ALLOW: '127.0.0.0/8',
}

function settingOf (keys: readonly Key[]): string {
  return keys.map(({ agent, secret }) => `${agent}:${secret}`).join(',')
}

/** The keys of one tenant. */
export function within (keys: readonly Key[], tenant: string): Key[] {
  return keys.filter(key => key.tenant === tenant)
}
