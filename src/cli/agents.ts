import { parseName } from '../clients/typescript/command/values.ts'
import { verbs } from '../clients/typescript/command/verbs.ts'
import type { Option, Verb } from '../clients/typescript/command/verbs.ts'

const tenantOption: Option = [
  '--tenant <tenant>', 'read this tenant’s from Redis, with the service’s settings and without a key', parseName
]

/** The agents' verbs, as in the client's package. Where Redis is, lists need no key. */
export const agents: Readonly<Record<string, Verb>> = {
  ...verbs, inboxes: reading('inboxes', verbs.inboxes!), list: reading('list', verbs.list!)
}

function reading (name: 'inboxes' | 'list', { options = [], run, ...verb }: Verb): Verb {
  return {
    ...verb,
    options: [...options, tenantOption],
    run: async (given, args) => typeof given.tenant === 'string'
      ? await (await import('./stored-lists.ts'))[name]({ ...given, tenant: given.tenant })
      : await run(given, args),
  }
}
