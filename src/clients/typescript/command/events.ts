import type { HandoffEvent } from '../index.ts'
import type { Labels } from './common/names.ts'
import { onStopSignal } from './common/signals.ts'
import { Failure, harmless, notWritten, oneLine, outputFault, print } from './output.ts'
import { clientFor, refused, wantedLabels } from './ask.ts'
import type { AskOptions } from './ask.ts'

/** `handoff events`: what happened to handoffs, one line an event. */

interface EventsOptions extends AskOptions {
  after?: string
  types?: string
  handoffId?: string
  inbox?: string
  label?: Labels
  follow?: boolean
}

/** @returns the exit status: a signal is how it is ended with --follow, so 0 then */
export async function events (options: EventsOptions): Promise<number> {
  const { after, types, handoffId, inbox, label, follow = false, json = false } = options
  const client = clientFor(options)
  const over = new AbortController()
  const end = () => over.abort()
  const unlisten = onStopSignal(end, () => process.exit(1))
  // Standard output is closed: `handoff events --follow | head -1`.
  process.stdout.once('error', end)
  try {
    for await (const event of client.events({
      after,
      types: types?.split(','),
      handoffId,
      inbox,
      ...wantedLabels(label),
      follow,
      signal: over.signal,
      onError
    })) {
      if (json) print(event.text)
      else if (event.type === 'reset') say('events are missing, since they are no longer kept; the oldest ones follow')
      else print(eventLine(event))
    }
    // The reader ends it by closing the pipe.
    const fault = await outputFault()
    if (fault !== undefined && fault.code !== 'EPIPE') throw new Failure(notWritten(fault))
    return 0
  } catch (error) {
    return refused(options, error)
  } finally {
    unlisten()
    process.stdout.off('error', end)
  }
}

function onError (error: unknown): void {
  say(`${(error as Error).message}; trying again`)
}

function say (line: string): void {
  process.stderr.write(`${oneLine(line)}\n`)
}

function eventLine ({ id, type, time, data }: HandoffEvent): string {
  const members = Object.entries(data).map(([name, value]) =>
    `${name}=${/^[\w.-]+$/.test(String(value)) ? value : harmless(JSON.stringify(value))}`)
  return harmless([time, id, type, ...members].join('  '))
}
