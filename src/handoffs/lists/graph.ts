import { isId, tagOf } from '../../core/ids.ts'
import { statusAt } from '../../core/model.ts'
import type { Caller, Status } from '../../core/model.ts'
import type { Dependents } from '../../store/dependents.ts'
import type { Handoffs } from '../../store/handoffs.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import { namedIn } from '../lifecycle/after.ts'

/** How many handoffs a graph has at most. */
const maxNodes = 50
/** How many attempts are followed to the last one. */
const maxAttempts = 20

/** `level`: its column; whatever it comes after is in an earlier one. */
export interface GraphNode { id: string, status: Status, to: string | undefined, level: number }

/** `isWhole`: nothing was left out. */
export interface Graph { nodes: GraphNode[], edges: Array<[before: string, after: string]>, isWhole: boolean }

/** A handoff that was read: its last attempt, the handoffs that this one comes after, and its dependents. */
interface Read { node: GraphNode, before: readonly string[], after: readonly string[] }

type Direction = 'before' | 'after'

/** The handoffs before and after others. */
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
   * The graph around a handoff; null if it comes after none, and has no dependents. It may take a thousand reads, so
   * each waits for its slot.
   */
  async around ({ tenant }: Caller, id: string, requester: Requester): Promise<Graph | null> {
    const first = await this.#read(tenant, id, requester)
    if (first === null || first.before.length + first.after.length === 0) return null
    const graph: Graph = { nodes: [first.node], edges: [], isWhole: true }
    for (const direction of ['before', 'after'] as const) await this.#grow(tenant, graph, first, direction, requester)
    setLevels(graph)
    return graph
  }

  /** Adds the handoffs in one direction, the nearest first. */
  async #grow (
    tenant: string, graph: Graph, first: Read, direction: Direction, requester: Requester
  ): Promise<void> {
    const known = new Map(graph.nodes.map(({ id }) => [id, id]))
    for (let level: Read[] = [first]; level.length > 0;) {
      const wanted = level.flatMap(one => one[direction].map(id => [one.node.id, id] as const))
      const ids = [...new Set(wanted.map(([, id]) => id))].filter(id => !known.has(id))
      const fitting = ids.slice(0, maxNodes - graph.nodes.length)
      if (fitting.length < ids.length) graph.isWhole = false
      const found = await Promise.all(fitting.map(id => this.#read(tenant, id, requester)))
      level = []
      for (const [at, read] of found.entries()) {
        if (read === null) continue
        // Several ids may have led to one last attempt.
        if (!graph.nodes.some(({ id }) => id === read.node.id)) {
          graph.nodes.push(read.node)
          level.push(read)
        }
        known.set(fitting[at]!, read.node.id)
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
  async #read (tenant: string, id: string, requester: Requester): Promise<Read | null> {
    for (let last = id, attempts = 0; isId(last); attempts++) {
      const place = { tenant, id: last, tag: tagOf(last) }
      const reply = await this.#reads.run({ ...place, requester }, () => this.#handoffs.status(place, 0, 0))
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
          ? await this.#reads.run({ ...place, requester }, () => this.#dependents.of(place, maxNodes))
          : []
      }
    }
    return null
  }
}

/** A handoff's column follows the last column of those that it comes after. None comes after itself, so this ends. */
export function setLevels ({ nodes, edges }: Graph): void {
  const byId = new Map(nodes.map(node => [node.id, node]))
  for (let round = 0; round < nodes.length; round++) {
    for (const [before, after] of edges) {
      byId.get(after)!.level = Math.max(byId.get(after)!.level, byId.get(before)!.level + 1)
    }
  }
}
