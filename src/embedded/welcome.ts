import type { LocalKeys } from './local-keys.ts'

/** What a newcomer sees: where it is, the keys (only when they were just made), and a first call to paste. */
export function welcome (address: string, keys: LocalKeys): string {
  return `
Agent Handoff Service
  address    ${address}
  docs       ${address}/docs
${keys.created
  ? `  agent key     ${keys.agentKey}\n  approver key  ${keys.approverKey}\n  Shown this once; kept in ${keys.agentKeyFile} and ${keys.approverKeyFile}.`
  : `  keys       in ${keys.agentKeyFile} and ${keys.approverKeyFile}`}

A first call, from this folder:

  curl -X POST ${address}/api/pass -H "Authorization: Bearer $(cat ${keys.agentKeyFile})" \\
    -H 'Content-Type: application/json' -d '{"task": "Say hello to the next agent"}'

`
}
