import { html } from 'ghtml'
import type { Graph, GraphNode } from '../../handoffs/graph.ts'

/** Of the picture, in its own units. */
const box = { width: 150, height: 44 }
const gap = { x: 56, y: 14 }
const margin = 4

interface Place { x: number, y: number }

/** What a handoff waits for and what waits for it, drawn from left to right. @param self the handoff of the page */
export function graphPicture (graph: Graph, self: string): string {
  const places = placesOf(graph)
  const width = Math.max(...[...places.values()].map(({ x }) => x)) + box.width + margin
  const height = Math.max(...[...places.values()].map(({ y }) => y)) + box.height + margin
  const lines = graph.edges.map(([before, after]) => line(places.get(before)!, places.get(after)!))
  const boxes = graph.nodes.map(node => boxOf(node, places.get(node.id)!, node.id === self))
  return html`<section aria-labelledby="order"><h2 id="order">In order</h2>
<div class="wide" tabindex="0" role="group" aria-labelledby="order"><svg class="graph" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">!${lines}!${boxes}</svg></div>
<p class="quiet">What is on the left must end first.!${graph.isWhole ? '' : ' There are more, which aren’t drawn.'}</p></section>`
}

/** A column for each level, each in the middle of the picture's height. */
function placesOf ({ nodes }: Graph): Map<string, Place> {
  const columns = new Map<number, GraphNode[]>()
  for (const node of nodes) columns.set(node.level, [...columns.get(node.level) ?? [], node])
  const max = Math.max(...[...columns.values()].map(column => column.length))
  const step = box.height + gap.y
  const places = new Map<string, Place>()
  for (const [level, column] of columns) {
    const top = margin + (max - column.length) * step / 2
    const x = margin + level * (box.width + gap.x)
    for (const [n, { id }] of column.entries()) places.set(id, { x, y: top + n * step })
  }
  return places
}

function line (from: Place, to: Place): string {
  const [x1, y1, x2, y2] = [from.x + box.width, from.y + box.height / 2, to.x, to.y + box.height / 2]
  const middle = (x1 + x2) / 2
  return html`<path d="M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2 - 5} ${y2}"/><path class="tip" d="M${x2} ${y2} l-7 -4 v8 z"/>`
}

const good = new Set(['done'])
const bad = new Set(['failed', 'declined', 'expired', 'rejected', 'cancelled'])

function boxOf ({ id, status, to }: GraphNode, { x, y }: Place, isSelf: boolean): string {
  const kind = good.has(status) ? 'good' : bad.has(status) ? 'bad' : 'other'
  const about = to === undefined ? status : `${status}, ${to.length > 12 ? `${to.slice(0, 11)}…` : to}`
  const inside = html`<rect class="${kind}!${isSelf ? ' self' : ''}" x="${x}" y="${y}" width="${box.width}" height="${box.height}" rx="6"/>
<text x="${x + 10}" y="${y + 18}"><tspan class="id">${id.slice(0, 12)}…</tspan><tspan x="${x + 10}" dy="17">${about}</tspan></text>`
  return isSelf ? html`<g>!${inside}</g>` : html`<a href="/console/handoffs/${id}">!${inside}</a>`
}
