import { html } from 'ghtml'
import type { Graph, GraphNode } from '../../handoffs/lists/graph.ts'
import { visibleText } from '../text.ts'

/** Handoffs as boxes with arrows between them. */

/** Of the picture, in its own units. `packed`: between boxes of one level that stand side by side. */
const box = { width: 150, height: 44 }
const gap = { x: 56, y: 14, packed: 14 }
const margin = 4
/** How much of a box's width its text has. */
const inside = box.width - 16
/** How many boxes of one level stand below each other, and how many of those without arrows stand side by side. */
const mostBoxes = { below: 12, beside: 6 }
/** How many characters of a title fit, about: what is longer is cut at the box's edge too. */
const fitting = 18

interface Place { x: number, y: number }

/** `self`: the handoff of the page. `label`: the id of the heading that names the picture. */
interface Picture { graph: Graph, titles: ReadonlyMap<string, string>, self?: string, label: string }

/** What comes after what, from left to right. What has no arrow stands below. */
export function graphPicture ({ graph, titles, self, label }: Picture): string {
  const places = placesOf(graph)
  const all = [...places.values()]
  const width = Math.max(...all.map(({ x }) => x)) + box.width + margin
  const height = Math.max(...all.map(({ y }) => y)) + box.height + margin
  const lines = graph.edges.map(([before, after]) => line(places.get(before)!, places.get(after)!))
  const boxes = graph.nodes.map(node => boxOf(node, places.get(node.id)!, titles.get(node.id), node.id === self))
  return html`<div class="picture" id="picture" tabindex="0" role="group" aria-labelledby="${label}"><svg class="graph" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><clipPath id="in-box"><polygon points="0,0 ${inside},0 ${inside},${box.height} 0,${box.height}"/></clipPath>!${lines}!${boxes}</svg></div>`
}

function placesOf ({ nodes, edges }: Graph): Map<string, Place> {
  const joined = new Set(edges.flat())
  const places = new Map<string, Place>()
  const under = placeLevels(nodes.filter(({ id }) => joined.has(id) || nodes.length === 1), places)
  const loose = nodes.filter(({ id }) => !places.has(id))
  for (const [n, { id }] of loose.entries()) {
    const [row, column] = [Math.floor(n / mostBoxes.beside), n % mostBoxes.beside]
    places.set(id, {
      x: margin + column * (box.width + gap.packed), y: under + row * (box.height + gap.y)
    })
  }
  return places
}

/** A column for each level, or several for one with many, each in the middle of the height. @returns where it ends */
function placeLevels (nodes: readonly GraphNode[], places: Map<string, Place>): number {
  if (nodes.length === 0) return margin
  const levels: GraphNode[][] = []
  for (const node of nodes) (levels[node.level] ??= []).push(node)
  const step = box.height + gap.y
  const rows = Math.min(mostBoxes.below, Math.max(...levels.map(level => level?.length ?? 0)))
  let x = margin
  for (const level of levels) {
    if (level === undefined) continue
    for (let at = 0; at < level.length; at += mostBoxes.below) {
      const column = level.slice(at, at + mostBoxes.below)
      const top = margin + (rows - column.length) * step / 2
      for (const [n, { id }] of column.entries()) places.set(id, { x, y: top + n * step })
      x += box.width + (at + mostBoxes.below < level.length ? gap.packed : gap.x)
    }
  }
  return margin + rows * step + gap.y
}

function line (from: Place, to: Place): string {
  const [x1, y1, x2, y2] = [from.x + box.width, from.y + box.height / 2, to.x, to.y + box.height / 2]
  const middle = (x1 + x2) / 2
  return html`<path d="M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2 - 5} ${y2}"/><path class="tip" d="M${x2} ${y2} l-7 -4 v8 z"/>`
}

const drawnAs: Record<string, string> = {
  done: 'good', failed: 'bad', declined: 'bad', expired: 'bad', rejected: 'bad', cancelled: 'bad'
}

function boxOf ({ id, status, to }: GraphNode, { x, y }: Place, title: string | undefined, isSelf: boolean): string {
  const about = to === undefined ? status : `${status}, ${to}`
  const name = title === undefined
    ? html`<tspan class="id">${id.slice(0, 12)}…</tspan>`
    : html`<tspan class="title">${shortened(title, fitting)}</tspan>`
  const drawn = html`<title>${title === undefined ? id : visibleText(title)}, ${about}</title><rect class="${drawnAs[status] ?? 'other'}!${isSelf ? ' self' : ''}" x="${x}" y="${y}" width="${box.width}" height="${box.height}" rx="6"/>
<g transform="translate(${x + 10} ${y})" clip-path="url(#in-box)"><text y="18">!${name}</text><text y="35">${shortened(about, fitting)}</text></g>`
  return isSelf ? html`<g>!${drawn}</g>` : html`<a href="/console/handoffs/${id}">!${drawn}</a>`
}

/** As much of a text as is about as wide as so many letters. */
function shortened (text: string, length: number): string {
  const characters = [...visibleText(text)]
  let wide = 0
  const end = characters.findIndex(character => (wide += isWide.test(character) ? 2 : 1) > length)
  return end === -1 ? characters.join('') : `${characters.slice(0, Math.max(1, end - 1)).join('')}…`
}

/** What takes the room of two letters. */
const isWide = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff01-\uff60]/u
