import { isId, tagOf } from '../core/ids.ts'
import { statusAt } from '../core/model.ts'
import type { Caller, Status } from '../core/model.ts'
import type { Dependents } from '../store/dependents.ts'
import type { Handoffs } from '../store/handoffs.ts'
import type { Reads } from '../store/reads.ts'
import { namedIn } from './after.ts'
import type { Asker } from './waiter.ts'

/** How many handoffs a graph has at most. */
const maxNodes = 50
/** How many attempts are followed to the last one. */
const maxAttempts = 20

/** `level`: its column; whatever it comes after is in an earlier one. */
export interface GraphNode { id: string, status: Status, to: string | undefined, level: number }

/** `isWhole`: nothing was left out. */
export interface Graph { nodes: GraphNode[], edges: Array<[before: string, after: string]>, isWhole: boolean }

/** A handoff that was read: its last attempt, what that one comes after, and who comes after it. */
interface Read { node: GraphNode, before: readonly string[], after: readonly string[] }

type Direction = 'before' | 'after'

/** What handoffs wait for, and what waits for them. */
export class Graphs {
  readonly #handoffs: Pick<Handoffs, 'status'>
  readonly #dependents: Pick<Dependents, 'of'>
  readonly #reads: Reads

  constructor (handoffs: Pick<Handoffs, 'status'>, dependents: Pick<Dependents, 'of'>, reads: Reads) {
    this.#handoffs = handoffs
    this.#dependents = dependents
    this.#reads = reads
  }

  /**
   * The graph around a handoff; null if it comes after nothing, and nothing waits for it. It may take a thousand reads,
   * so each of them waits for its slot.
   */
  async around ({ tenant }: Caller, id: string, asker: Asker): Promise<Graph | null> {
    const first = await this.#read(tenant, id, asker)
    if (first === null || first.before.length + first.after.length === 0) return null
    const graph: Graph = { nodes: [first.node], edges: [], isWhole: true }
    for (const direction of ['before', 'after'] as const) await this.#grow(tenant, graph, first, direction, asker)
    setLevels(graph)
    return graph
  }

  /** Adds what is in one direction, the nearest first. */
  async #grow (
    tenant: string, graph: Graph, first: Read, direction: Direction, asker: Asker
  ): Promise<void> {
    const known = new Map(graph.nodes.map(({ id }) => [id, id]))
    for (let level: Read[] = [first]; level.length > 0;) {
      const wanted = level.flatMap(one => one[direction].map(id => [one.node.id, id] as const))
      const ids = [...new Set(wanted.map(([, id]) => id))].filter(id => !known.has(id))
      const room = ids.slice(0, maxNodes - graph.nodes.length)
      if (room.length < ids.length) graph.isWhole = false
      const found = await Promise.all(room.map(id => this.#read(tenant, id, asker)))
      level = []
      for (const [at, read] of found.entries()) {
        if (read === null) continue
        // Several ids may have led to one last attempt.
        if (!graph.nodes.some(({ id }) => id === read.node.id)) {
          graph.nodes.push(read.node)
          level.push(read)
        }
        known.set(room[at]!, read.node.id)
      }
      for (const [from, id] of wanted) {
        const to = known.get(id)
        if (to === undefined) continue
        const [before, after] = direction === 'before' ? [to, from] : [from, to]
        if (!graph.edges.some(edge => edge[0] === before && edge[1] === after)) graph.edges.push([before, after])
      }
    }
  }

  /** Reads a handoff at its last attempt; null if it is gone. */
  async #read (tenant: string, id: string, asker: Asker): Promise<Read | null> {
    for (let last = id, attempts = 0; isId(last); attempts++) {
      const place = { tenant, id: last, tag: tagOf(last) }
      const reply = await this.#reads.run({ ...place, asker }, () => this.#handoffs.status(place, 0, 0))
      if (reply.outcome === 'not_found') return null
      const { record, now, after } = reply
      const next = record.extra.reissuedAs
      if (next !== undefined && attempts < maxAttempts) {
        last = next
        continue
      }
      return {
        node: { id: last, status: statusAt(record, now), to: record.extra.to, level: 0 },
        before: namedIn(after).map(({ named, last: end }) => end ?? named),
        after: record.extra.hasDependents
          ? await this.#reads.run({ ...place, asker }, () => this.#dependents.of(place, maxNodes))
          : []
      }
    }
    return null
  }
}

/** Each stands after the last of those that it comes after. No handoff comes after itself, so this ends. */
function setLevels ({ nodes, edges }: Graph): void {
  const byId = new Map(nodes.map(node => [node.id, node]))
  for (let round = 0; round < nodes.length; round++) {
    for (const [before, after] of edges) {
      byId.get(after)!.level = Math.max(byId.get(after)!.level, byId.get(before)!.level + 1)
    }
  }
}
