import type { HandoffClient, ScheduleBody } from '../index.ts'
import { ask, lines, oldest, listLines } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { momentText, serviceTime } from './list.ts'
import { UsageError } from './output.ts'
import type { Moment } from './values.ts'

/** `handoff schedules`: what passes handoffs by itself. */

interface StepOptions extends AskOptions {
  cron?: string
  every?: number
  timezone?: string
  overlap?: 'skip' | 'allow' | 'cancel'
  catchUp?: number
  jitter?: number
  startsAt?: string
  endsAt?: string
  paused?: boolean
  since?: Moment
  until?: Moment
}

const plainLines = ({ text }: { readonly text: string }) => lines(text)
const scheduleSteps = ['list', 'get', 'set', 'pause', 'resume', 'run', 'runs', 'backfill', 'delete'] as const

/** @param handoff what `set` passes @returns the exit status */
export async function schedules (
  options: StepOptions, step: string, name: string | undefined, handoff: ScheduleBody['handoff']
): Promise<number> {
  if (!(scheduleSteps as readonly string[]).includes(step)) throw new UsageError(`schedules: ${step} is none of ${scheduleSteps.join(', ')}`)
  if (step === 'list') {
    return await ask(
      options, client => oldest(page => client.schedules.list(page)), ({ text }) => listLines(text, 'no schedules')
    )
  }
  if (name === undefined) throw new UsageError(`schedules ${step}: the schedule’s name is missing`)
  if (step === 'set') return await setSchedule(options, name, handoff)
  if (step === 'backfill') return await fillSchedule(options, name)
  if (step === 'delete') {
    return await ask(options, async client => {
      await client.schedules.delete(name)
      return { text: '{}' }
    }, () => 'deleted')
  }
  if (step === 'runs') {
    return await ask(options, client => client.schedules.runs(name), ({ text }) => listLines(text, 'no runs'))
  }
  const taken = step as 'get' | 'pause' | 'resume' | 'run'
  return await ask(options, (client: HandoffClient) => client.schedules[taken](name), plainLines)
}

async function setSchedule (options: StepOptions, name: string, handoff: ScheduleBody['handoff']): Promise<number> {
  const { cron, every, timezone, overlap, catchUp, jitter, startsAt, endsAt, paused } = options
  if (handoff.task === undefined) throw new UsageError('schedules set: --task is missing')
  if ((cron === undefined) === (every === undefined)) throw new UsageError('schedules set: give --cron or --every')
  const said = {
    cron, every, timezone, overlap, catch_up: catchUp, jitter, starts_at: startsAt, ends_at: endsAt, paused
  }
  const given = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined))
  const body = { ...given, handoff }
  return await ask(options, client => client.schedules.put(name, body), plainLines)
}

async function fillSchedule (options: StepOptions, name: string): Promise<number> {
  const { since, until } = options
  if (since === undefined || until === undefined) {
    throw new UsageError('schedules backfill: --since and --until are missing')
  }
  const now = await serviceTime(options)
  return await ask(
    options, client => client.schedules.backfill(name, momentText(since, now)!, momentText(until, now)!), plainLines
  )
}
