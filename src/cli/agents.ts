import { UsageError } from '../clients/typescript/command/output.ts'
import { parseName } from '../clients/typescript/command/values.ts'
import { verbs } from '../clients/typescript/command/verbs.ts'
import type { Option, Verb } from '../clients/typescript/command/verbs.ts'

const tenantOption: Option = [
  '--tenant <tenant>', 'read this tenant’s from Redis, with the service’s settings and without a key', parseName
]

/** The agents' verbs, as in the client's package. Where Redis is, lists need no key. */
export const agents: Readonly<Record<string, Verb>> = {
  ...verbs,
  inboxes: reading('inboxes', verbs.inboxes!),
  list: reading('list', verbs.list!),
  decisions: forgetting(verbs.decisions!)
}

/** `handoff decisions forget ID` is the operator's: it writes to Redis. */
function forgetting ({ options = [], run, ...verb }: Verb): Verb {
  return {
    ...verb,
    arguments: [
      ['[forget]', 'forget: remove the texts of what people decided on a handoff; that they did is kept'],
      ['[id]', 'which handoff to forget, in Redis, with the service’s settings and without a key']
    ],
    options: [...options, ['--tenant <tenant>', 'the handoff’s tenant, for forget; default by default', parseName]],
    run: async (given, [verb, id]) => {
      if (verb === undefined || verb === '') return await run(given, [])
      if (verb !== 'forget' || !id) throw new UsageError('decisions takes nothing, or forget and an id')
      const { forget } = await import('./forget.ts')
      return await forget(id, { tenant: (given.tenant ?? 'default') as string, json: given.json === true })
    },
  }
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
