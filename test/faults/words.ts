import type { Operation } from './history.ts'

/** Operations for a person, a line each; times in milliseconds since the first was sent. */
export function lines (operations: readonly Operation[]): string {
  const start = Math.min(...operations.map(({ sent }) => sent))
  return operations.map(operation => `  ${line(operation, start)}`).join('\n')
}

function line ({ n, kind, agent, token, sent, answered, ended, status, code, answer, replayed }: Operation, start: number): string {
  const since = (time: number) => (time - start).toFixed(1)
  const end = ended === null ? 'under way' : since(ended)
  const said = answered === null
    ? 'no answer'
    : [status, code, replayed ? 'replayed' : null, answer === null ? null : JSON.stringify(answer)].filter(part => part !== null).join(' ')
  return `${n} ${since(sent)}–${end} ${kind} by ${agent}${token === null ? '' : ` with ${token}`}: ${said}`
}
