import type { LocalKeys } from './local-keys.ts'

/** The text for newcomers: the address, the keys (only when just made), and a first call to paste. */
export function banner (address: string, keys: LocalKeys | undefined): string {
  return `
Agent Handoff Service
  address       ${address}
  docs          ${address}/docs
${keys === undefined ? '' : keyLines(keys)}
A first call, from this folder:

  curl -X POST ${address}/api/pass -H "Authorization: Bearer ${keys === undefined ? '<a key of API_KEYS>' : `$(cat ${keys.agentKeyFile})`}" \\
    -H 'Content-Type: application/json' -d '{"task": "Say hello to the next agent"}'

`
}

function keyLines ({ created, agentKey, approverKey, agentKeyFile, approverKeyFile }: LocalKeys): string {
  if (!created) return `  keys          in ${agentKeyFile} and ${approverKeyFile}\n`
  return `  agent key     ${agentKey}\n  approver key  ${approverKey}\n  Shown only once; stored in ${agentKeyFile} and ${approverKeyFile}.\n`
}
