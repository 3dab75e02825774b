/** A variable of the environment, where there is one: neither browsers nor every edge runtime has `process`. */
export function fromEnvironment (name: 'HANDOFF_URL' | 'HANDOFF_KEY'): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined
}
