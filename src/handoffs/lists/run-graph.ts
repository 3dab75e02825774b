import { homeTag } from '../../core/ids.ts'
import { statusAt } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import { Shared } from '../../core/shared.ts'
import { fanOf } from '../../store/dependents.ts'
import type { Dependents } from '../../store/dependents.ts'
import type { Descriptions } from '../../store/descriptions.ts'
import type { ListPosition, ListedHandoff, Lists, Wanted } from '../../store/lists.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import type { RunCounts, Runs } from '../../store/runs.ts'
import { namedIn } from '../lifecycle/after.ts'
import { titleText } from './excerpt.ts'
import { setLevels } from './graph.ts'
import type { Graph } from './graph.ts'
import { maySeeTitle } from './titles.ts'

/** How many handoffs of a run are drawn at most, and how many of them are those that failed, if there are others. */
const drawn = { all: 200, failed: 60 }
/** How many pages of a list are read for them at most, and how many ids are looked up that others come after. */
const looked = { pages: 4, ids: 200 }
/** For how long a picture serves others as well, in milliseconds. */
const drawnFor = 1000

type Counts = Omit<RunCounts, 'value'>

/** A run: its counts, null if there is none; what is drawn of it, and what each of that is about. */
interface DrawnRun { counts: Counts | null, graph: Graph, titles: ReadonlyMap<string, string>, now: number }

/** What is read of a run, before it is known who looks at it. */
interface ReadRun extends Omit<DrawnRun, 'graph' | 'titles'> {
  items: ListedHandoff[]
  edges: Graph['edges']
  isWhole: boolean
}

interface RunStores { lists: Lists, runs: Runs, descriptions: Descriptions, dependents: Dependents }

/** Draws runs: their works, each at its last attempt, and what comes after what. */
export class RunGraphs {
  readonly #stores: RunStores
  readonly #reads: Reads
  readonly #listsEnded: boolean
  readonly #shared = new Shared<ReadRun>({ keptFor: drawnFor, max: 100 })

  /** @param listsEnded whether what has ended is listed */
  constructor (stores: RunStores, reads: Reads, listsEnded: boolean) {
    this.#stores = stores
    this.#reads = reads
    this.#listsEnded = listsEnded
  }

  /** @param label `name:value`, of a name that makes runs */
  async draw (caller: Caller, label: string, requester: Requester): Promise<DrawnRun> {
    const { tenant } = caller
    const { items, edges, isWhole, counts, now } =
      await this.#shared.get(`${tenant} ${label}`, () => this.#read(tenant, label, requester))
    const nodes = items.map(({ id, record }) =>
      ({ id, status: statusAt(record, now), to: record.extra.to, level: 0 }))
    const graph: Graph = { nodes, edges, isWhole }
    setLevels(graph)
    const titles = new Map(items.flatMap(({ id, title, record }): Array<[string, string]> =>
      title === null || !maySeeTitle(caller, record.extra.to) ? [] : [[id, JSON.parse(titleText(title)) as string]]))
    return { counts, graph, titles, now }
  }

  async #read (tenant: string, label: string, requester: Requester): Promise<ReadRun> {
    const wanted = { tenant, labels: [label], run: label }
    const counts = await this.#reads.run({ tenant, tag: homeTag(tenant), requester }, () =>
      this.#stores.runs.counts(tenant, label))
    const failed = await this.#list({ ...wanted, state: 'failed' }, drawn.all, requester)
    const live = await this.#list({ ...wanted, state: 'live' }, drawn.all, requester)
    const ended = this.#listsEnded
      ? await this.#list({ ...wanted, state: 'ended' }, drawn.all, requester)
      : { items: [], isWhole: true, now: 0 }
    const inOrder = [...failed.items.slice(0, drawn.failed), ...live.items, ...ended.items, ...failed.items]
    const byId = new Map(inOrder.map(item => [item.id, item]))
    const items = [...byId.values()].slice(0, drawn.all)
    return {
      items: items.sort((one, other) => one.record.createdAt - other.record.createdAt),
      edges: await this.#edges(tenant, items, requester),
      isWhole: items.length === byId.size && failed.isWhole && live.isWhole && ended.isWhole,
      counts,
      now: Math.max(failed.now, live.now, ended.now)
    }
  }

  async #list (
    wanted: Wanted, limit: number, requester: Requester
  ): Promise<{ items: ListedHandoff[], isWhole: boolean, now: number }> {
    const items: ListedHandoff[] = []
    let from: ListPosition | null = null
    let now = 0
    for (let pages = 0; pages < looked.pages && items.length < limit; pages++) {
      const read = () => this.#stores.lists.page(wanted, from, Math.min(100, limit - items.length), 'title')
      const page = await this.#reads.page(wanted.tenant, undefined, read, requester)
      items.push(...page.items)
      now = Math.max(now, page.now)
      from = page.next
      if (from === null) break
    }
    return { items, isWhole: from === null, now }
  }

  /** What comes after what, and what is a part of what, among these. */
  async #edges (tenant: string, items: readonly ListedHandoff[], requester: Requester): Promise<Graph['edges']> {
    const here = new Map(items.map(({ id }) => [id, id]))
    for (const { id, record: { extra } } of items) if (extra.reissueOf !== undefined) here.set(extra.reissueOf, id)
    const waiting = items.filter(({ record }) => record.extra.after !== undefined).map(({ id }) => id)
    const named: Array<[before: string, after: string]> = items.flatMap(({ id, record: { extra } }) =>
      extra.parent === undefined ? [] : [[extra.parent, id]])
    if (waiting.length > 0) {
      const described = await this.#reads.page(
        tenant, undefined, () => this.#stores.descriptions.of(tenant, waiting), requester
      )
      for (const [id, { after }] of described) {
        for (const one of namedIn(after)) named.push([one.last ?? one.named, id])
      }
    }
    const unknown = [...new Set(named.map(([before]) => before))].filter(id => !here.has(id)).slice(0, looked.ids)
    if (unknown.length > 0) {
      const read = () => this.#stores.dependents.look(tenant, unknown, fanOf())
      for (const { named, last } of await this.#reads.page(tenant, undefined, read, requester)) here.set(named, last)
    }
    const drawnIds = new Set(items.map(({ id }) => id))
    const edges = named.map(([before, after]) => `${here.get(before) ?? ''} ${after}`)
    return [...new Set(edges)].map(edge => edge.split(' ') as [string, string])
      .filter(([before, after]) => drawnIds.has(before) && before !== after)
  }
}
