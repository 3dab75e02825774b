import { setImmediate } from 'node:timers/promises'
import { hasScope, refusedScope } from '../../auth/scopes.ts'
import { PayloadLocked, Problem, Unavailable, invalid } from '../../core/errors.ts'
import type { Fault } from '../../core/errors.ts'
import { faultsInFiles, uploadIn } from '../../core/files.ts'
import type { GivenFile } from '../../core/files.ts'
import { digestToken, homeTag, numberOf, randomToken, runsTag, tagOf, tickId } from '../../core/ids.ts'
import type { Members } from '../../core/json.ts'
import type { Caller } from '../../core/model.ts'
import type { PassAnswer, PassBody } from '../../core/schemas/handoffs.ts'
import { scheduleNamePattern } from '../../core/schemas/parts.ts'
import type { BackfillBody, RunsOfQuery, ScheduleGiven, SchedulesQuery } from '../../core/schemas/schedules.ts'
import { readFaults } from '../../core/validator.ts'
import type { Validate } from '../../core/validator.ts'
import { readTime } from '../../clients/typescript/command/common/time.ts'
import type { ResultSchemas } from '../../result-schema/result-schemas.ts'
import { noteOfRuns, readBegunRun } from '../../store/schedules.ts'
import type { BegunRun, ScheduleStore, StoredSchedule } from '../../store/schedules.ts'
import { faultsWithoutInbox } from '../lifecycle/option-words.ts'
import { Backfill, tickOf } from './backfill.ts'
import type { BackfillResult } from './backfill.ts'
import { dueAt, paused, readBody, readSays, replaced, shownSchedule } from './definition.ts'
import type { Before, Says } from './definition.ts'
import { runNoted, runText } from './runs.ts'
import type { PassOutcome, Run, ScheduleCounts, Runner } from './runs.ts'
import { bodyOf, cutHandoff, withToken } from './template.ts'

const scheduleName = new RegExp(scheduleNamePattern)
/** How often a change is tried again that met another one. */
const changeTries = 8
/** After how many schedules of a list others are served. */
const listedInTurn = 5
/** As many as there may be (lua/schedule-run.lua). */
const allBegun = { list: 'begun', count: 1000 } as const
/** For how long a run that was asked for may be under way (ms). */
const underWay = 10_000

interface ScheduleOptions {
  /** Checks a schedule's handoff, as pass checks a body's form. */
  validate: Validate
  /** The members of a handoff that have parts which are checked too. */
  nested: readonly string[]
  schemas: ResultSchemas
  /** Checks a callback, as pass does. Throws a 400. */
  acceptCallback: (text: Buffer) => unknown
  counts: ScheduleCounts
}

/** @param isAnothers whether an operator changed what another agent made */
interface ChangedSchedule { answer: string, isNew: boolean, isAnothers: boolean }

/** Makes, changes and shows schedules. What they pass is Ticker's. */
export class ScheduleService {
  readonly #store: ScheduleStore
  readonly #runner: Runner
  readonly #backfill: Backfill
  readonly #options: ScheduleOptions

  constructor (store: ScheduleStore, runner: Runner, options: ScheduleOptions) {
    this.#store = store
    this.#runner = runner
    this.#backfill = new Backfill(store, runner, options.counts)
    this.#options = options
  }

  async put (caller: Caller, name: string, body: ScheduleGiven, members: Members): Promise<ChangedSchedule> {
    checkName(name)
    const faults: Fault[] = []
    const said = readBody(body, faults)
    const given = members.raw('handoff')!
    // Before anything is looked up: a body that can't be one is refused first.
    const handoffFaults = this.#faultsOf(withToken(given, () => null))
    if (faults.length + handoffFaults.length > 0) throw invalid(...faults, ...handoffFaults)
    await this.#checkSchema(caller, given)
    return this.#change(caller, name, (before, now) => {
      if (before === null && !hasScope(caller, 'pass')) throw refusedScope('pass')
      const handoff = withToken(given, () => before?.schedule.handoff ?? null)
      return { ...replaced(name, said, before, caller, now), handoff }
    })
  }

  async pause (caller: Caller, name: string, isPaused: boolean): Promise<ChangedSchedule> {
    return await this.#change(caller, name, (before, now) => {
      if (before === null) throw new Problem('not_found')
      return { ...paused(name, before, isPaused, now), handoff: null }
    })
  }

  async get ({ tenant }: Caller, name: string): Promise<string> {
    const { schedule } = await this.#read(tenant, name)
    return shown(schedule)
  }

  async list ({ tenant }: Caller, { cursor, limit = 20 }: SchedulesQuery): Promise<string> {
    const after = cursor === undefined ? '' : readCursor(cursor)
    const { items, isMore } = await this.#store.list(tenant, after, limit)
    const texts: string[] = []
    for (const { name, says, next, last } of items) {
      // Next times may be years apart, and then finding those of a hundred takes long: others are served between.
      if (texts.push(shownSchedule(name, readSays(says), next, last)) % listedInTurn === 0) await setImmediate()
    }
    const next = isMore && items.length > 0 ? writeCursor(items.at(-1)!.name) : null
    return `{"items":[${texts.join(',')}],"next_cursor":${JSON.stringify(next)}}`
  }

  /** @returns whether it was another agent's */
  async delete (caller: Caller, name: string): Promise<boolean> {
    const { schedule } = await this.#read(caller.tenant, name)
    const isAnothers = checkOwner(caller, readSays(schedule.says))
    let { claim } = schedule
    for (let n = 0; n < changeTries; n++) {
      // What a replica has begun: once this has been settled, it can't pass anything any more. If this fails, the
      // schedule is still there, so that a retry can do it.
      if (claim !== null) await this.#store.settle(schedule, tickOf(schedule, claim.tag, 't', claim).id, claim)
      claim = await this.#store.delete(schedule, claim)
      if (claim === null) return isAnothers
    }
    throw new Unavailable('the schedule ticks all the time')
  }

  async runs ({ tenant }: Caller, name: string, { limit = 100 }: RunsOfQuery): Promise<string> {
    const { schedule, beside, now } = await this.#read(tenant, name, allBegun)
    // What makes up for a tick the next backfill settles.
    const open = beside.map(readBegunRun).filter(run => !('round' in run)).slice(-100)
    const found = await Promise.all(open.map(begun => this.#settleRun(schedule, begun, now)))
    const { beside: runs } = await this.#read(tenant, name, { list: 'runs', count: 100 })
    const texts = new Set([...runs, ...found.filter(text => text !== null)])
    const items = [...texts].map(text => ({ text, at: (JSON.parse(text) as Run).at })).reverse()
    items.sort((one, other) => one.at < other.at ? 1 : one.at > other.at ? -1 : 0)
    return `{"items":[${items.slice(0, limit).map(({ text }) => text).join(',')}]}`
  }

  /** Notes a run that was asked for, if it was passed. @returns it, as it is noted; null if it wasn't */
  async #settleRun (schedule: StoredSchedule, begun: BegunRun, now: number): Promise<string | null> {
    const run = await this.#runner.found(schedule.tenant, begun.id, 'run')
    if (run === null && now - begun.at < underWay) return null
    await this.#note(schedule, run === null ? [] : [run], begun, true)
    return run === null ? null : runText(run)
  }

  /** Passes what it says now. */
  async run (
    caller: Caller, name: string, key: string | undefined
  ): Promise<{ answer: PassAnswer, replayed: boolean, isAnothers: boolean }> {
    const { schedule, now } = await this.#read(caller.tenant, name)
    const says = readSays(schedule.says)
    const isAnothers = checkOwner(caller, says)
    const { begun, passed } = await this.#runOnce(caller, schedule, now, key)
    if (passed.outcome === 'ticked') throw new Unavailable('the schedule changes all the time')
    const { outcome } = passed
    if (outcome === 'passed' && passed.replayed) {
      await this.#settleRun(schedule, begun, now)
    } else {
      this.#options.counts.outcomes[outcome]++
      await this.#note(schedule, [runNoted(now, now, 'run', passed)], begun)
    }
    if (outcome === 'refused') throw passed.problem
    return { answer: passed.answer, replayed: passed.replayed, isAnothers }
  }

  /**
   * Passes a run. The first call with its key may have gone to another partition: then it is settled there, and begins
   * anew in this one only if it never will be in that.
   */
  async #runOnce (
    { tenant, agent }: Caller, schedule: StoredSchedule, now: number, key: string | undefined
  ): Promise<{ begun: BegunRun, passed: PassOutcome }> {
    const { name, making, home } = schedule
    const scope = `run ${tenant} ${name} ${making} ${agent} ${key}`
    const keyed = key === undefined ? null : digestToken('run', scope, undefined)
    const token = key === undefined ? '-' : digestToken('run', key, undefined)
    let id = key === undefined ? home + randomToken() : tickId(home, scope)
    let replaces: BegunRun | null = null
    for (let n = 0; ; n++) {
      const begun = await this.#store.begin(schedule, keyed, { id, at: now }, replaces)
      if (begun === null) throw new Problem('not_found')
      const number = numberOf(begun.id)
      if (tagOf(begun.id) !== home) await this.#store.settle(schedule, begun.id, { tick: number, round: 0 }, 'r')
      const tick = key === undefined ? '' : ` Kr/${making}/${number}/0`
      const passed = await this.#runner.pass(schedule, readSays(schedule.says), now, { id: begun.id, token, tick })
      if (passed.outcome !== 'ticked' || n === changeTries) return { begun, passed }
      ;[id, replaces] = [home + randomToken(), begun]
    }
  }

  /** Passes what didn't run in a span. */
  async backfill (
    caller: Caller, name: string, { since, until }: BackfillBody
  ): Promise<{ answer: BackfillResult, isAnothers: boolean }> {
    const [from, to] = [since, until].map(text => readTime(text)) as [number | undefined, number | undefined]
    const faults = [['since', from], ['until', to]].filter(([, time]) => time === undefined).map(([name]) =>
      ({ pointer: `/${name}`, message: 'must be a time like 2026-11-20T09:00:00.000Z' }))
    if (faults.length > 0) throw invalid(...faults)
    if (to! <= from!) throw invalid({ pointer: '/until', message: 'must be after since' })
    const { schedule, now, beside } = await this.#read(caller.tenant, name, allBegun)
    if (to! > now) throw invalid({ pointer: '/until', message: 'must not be in the future' })
    const isAnothers = checkOwner(caller, readSays(schedule.says))
    // Read later than what was begun: what isn't begun any more has been noted by then.
    const { beside: ran } = await this.#store.read(caller.tenant, name, { list: 'ran', count: 10_000 })
    const known = { schedule, now, ran, begun: beside.map(readBegunRun).filter(run => 'round' in run) }
    return { answer: await this.#backfill.go(known, from!, to!), isAnothers }
  }

  /** What can't be noted now is, by the next look at its runs. */
  async #note (schedule: StoredSchedule, runs: readonly Run[], ends: BegunRun, isOnce = false): Promise<void> {
    await this.#store.note(schedule, { ...noteOfRuns, runs: runs.map(runText), ends: [ends], isOnce }).catch(error => {
      if (!(error instanceof Unavailable)) throw error
    })
  }

  async #read (tenant: string, name: string, beside?: { list: 'runs' | 'ran' | 'begun', count: number }) {
    checkName(name)
    const { schedule, ...more } = await this.#store.read(tenant, name, beside)
    if (schedule === null) throw new Problem('not_found')
    return { schedule, ...more }
  }

  /** Reads it, and writes what it says from now on, again until nothing came between. A `handoff` of null stays. */
  async #change (
    caller: Caller, name: string,
    change: (
      before: Before & { schedule: StoredSchedule } | null, now: number
    ) => { says: Says, next: number | null, handoff: Buffer | null }
  ): Promise<ChangedSchedule> {
    checkName(name)
    const { tenant } = caller
    for (let n = 0; n < changeTries; n++) {
      const { now, schedule } = await this.#store.read(tenant, name)
      const before = schedule === null
        ? null
        : { schedule, says: readSays(schedule.says), next: schedule.next, last: schedule.last }
      const isAnothers = before !== null && checkOwner(caller, before.says)
      const { says, next, handoff } = change(before, now)
      const { outcome } = await this.#store.put(tenant, name, {
        seen: schedule,
        token: randomToken(),
        says: JSON.stringify(says),
        handoff,
        home: handoff === null ? schedule!.home : homeOf(tenant, handoff),
        next,
        dueAt: next === null ? null : dueAt(name, says, next)
      })
      if (outcome === 'too_many') throw new Problem('too_many_schedules')
      if (outcome !== 'put') continue
      await this.#store.notify(homeTag(tenant))
      const answer = shownSchedule(name, says, next, schedule?.last ?? null, handoff ?? keptIn(schedule!))
      return { answer, isNew: schedule === null, isAnothers }
    }
    throw new Unavailable('the schedule changes all the time')
  }

  /** What pass would say of its form, once a time is put in. */
  #faultsOf (handoff: Buffer): Fault[] {
    const { validate, nested } = this.#options
    const members = cutHandoff(bodyOf(cutHandoff(handoff, []), 0), nested)
    const inside = ({ pointer, message }: Fault) => ({ pointer: `/handoff${pointer}`, message })
    const { values } = members
    if (!validate(values)) return readFaults(validate.errors!, undefined).map(inside)
    const ofCallback = values.callback == null ? [] : this.#callbackFaults(members.raw('callback')!)
    return [...faultsWithoutInbox(values), ...filesFaults(values.files), ...ofCallback].map(inside)
  }

  #callbackFaults (callback: Buffer): Fault[] {
    try {
      this.#options.acceptCallback(callback)
      return []
    } catch (error) {
      if (error instanceof Problem && error.code === 'invalid_request') return error.more.members!.errors as Fault[]
      throw error
    }
  }

  async #checkSchema (caller: Caller, handoff: Buffer): Promise<void> {
    const members = cutHandoff(handoff, [])
    if (members.values.result_schema == null) return
    await this.#options.schemas.accept(members.raw('result_schema')!, caller, 'handoff/result_schema')
  }
}

/** An upload goes when nothing has it, and a schedule has nothing until it runs. */
function filesFaults (files: unknown): Fault[] {
  if (files == null) return []
  const given = files as GivenFile[]
  const faults = faultsInFiles(given, '/files')
  const hasUploads = given.some(({ uri }) => uploadIn(uri) !== null)
  return hasUploads ? [...faults, { pointer: '/files', message: 'a schedule takes https links alone' }] : faults
}

function shown ({ name, says, next, last, handoff }: StoredSchedule): string {
  return shownSchedule(name, readSays(says), next, last, handoff)
}

/** @returns null where this replica doesn't have its key */
function keptIn (schedule: StoredSchedule): Buffer | null {
  try {
    return schedule.handoff
  } catch (error) {
    if (error instanceof PayloadLocked) return null
    throw error
  }
}

/** The tag of the partition that its handoffs are in. */
function homeOf (tenant: string, handoff: Buffer): string {
  const { to } = cutHandoff(handoff, []).values as unknown as PassBody
  return runsTag(tenant, to ?? undefined)
}

/** A name that can't be one has no schedule. */
function checkName (name: string): void {
  if (!scheduleName.test(name)) throw new Problem('not_found')
}

/** @returns whether an operator changes what another agent made @throws {Problem} not_the_passer */
function checkOwner (caller: Caller, { passedBy }: Says): boolean {
  if (caller.agent === passedBy && hasScope(caller, 'pass')) return false
  if (hasScope(caller, 'operate')) return caller.agent !== passedBy
  throw new Problem('not_the_passer', {
    detail: 'Another agent made this schedule; only that agent, or an operator, may change it.'
  })
}

function writeCursor (name: string): string {
  return Buffer.from(`schedule ${name}`).toString('base64url')
}

function readCursor (cursor: string): string {
  const [, name] = /^schedule (\S+)$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (name === undefined || !scheduleName.test(name)) {
    throw invalid({ pointer: '/cursor', message: 'querystring: must be a next_cursor of this list' })
  }
  return name
}
