import { Failure } from '../clients/typescript/command/output.ts'
import { exitStatus, runVerb } from '../clients/typescript/command/run.ts'
import { version } from '../core/version.ts'
import { agents } from './agents.ts'

/**
 * `handoff`, the service's command: the agents' verbs are those of the client's package, and everything else is the
 * operator's, which is loaded only then. An error is one line on stderr.
 * @returns the exit status
 */
export async function runCommand (args: readonly string[]): Promise<number> {
  return await exitStatus(async () => {
    try {
      return await runVerb(agents, args, version) ?? await (await import('./operator.ts')).operate(args)
    } catch (error) {
      throw isKnown(error) ? new Failure(error.message) : error
    }
  })
}

/** By name: to load the modules that define these errors takes longer than all of this. */
function isKnown (error: unknown): error is Error {
  return error instanceof Error && ['SettingError', 'EmbeddedError'].includes(error.name)
}
