import { html } from 'ghtml'
import { readFiles } from '../../core/files.ts'
import type { HandoffFile } from '../../core/files.ts'
import { membersOf } from '../../core/nested.ts'
import { itemsIn } from '../json-view.ts'
import { amountOf, size } from '../text.ts'
import { Writing, part } from './content.ts'
import { filesView } from './files.ts'

/** What a reader sees of one handoff: what was passed, what came of it, and what was asked. */

/** The parts, in order: the answer's member, and its heading. How it goes on stands above, for all. */
const parts = [
  ['task', 'Task'], ['output', 'Output'], ['context', 'Context'],
  ['constraints', 'Constraints'], ['files', 'Files'], ['result', 'Result'], ['result_files', 'Result files'],
  ['error', 'Error'],
  ['question', 'Question'], ['answer', 'Answer']
] as const

const noResultYet = '<p class="quiet">There is no result yet. Load the page again to see what comes of it.</p>'
/** What its passer wrote. */
const passedMembers: ReadonlySet<string> = new Set(['task', 'output', 'context', 'constraints', 'files'])

/** @param answer that of GET /api/handoffs/:id @param isLive it hasn't ended @param whole the path of all of it */
export function everythingView (answer: Buffer, isLive: boolean, whole: string): string {
  const members = membersOf(answer)
  const { passed_by: passer, caught_by: catcher } = members.values as { passed_by: string, caught_by: string | null }
  // What was passed may be long: then what came of it is shown all the same.
  const [passed, said] = [new Writing(passer), new Writing(catcher ?? passer)]
  const views = parts.map(([name, title]) => {
    if (members.values[`${name}_omitted`] === true) {
      return part(title, '<p>It is too long for this page: what agents wrote has more than 4 MiB. ' +
        '<code>GET /api/handoffs/ID</code> leaves it out as well; its catcher has it.</p>')
    }
    const raw = members.raw(name)
    if (raw !== undefined && name.endsWith('files')) return partOfFiles(title, readFiles(raw))
    const text = raw?.toString() ?? 'null'
    return text === 'null' ? '' : valueView(title, text, passedMembers.has(name) ? passed : said)
  })
  const isGone = members.raw('task')?.toString() === 'null'
  return html`<div class="everything"><h2 class="unseen">What was passed, and what came of it</h2>
!${passed.isCut || said.isCut ? html`<p>This is only the beginning. <a href="${whole}">Download the whole</a>.</p>` : ''}
!${isGone ? part('Task', '<p>What was passed has been deleted, or is on the next attempt’s page.</p>') : ''}!${views}
!${isLive ? noResultYet : ''}</div>`
}

function partOfFiles (title: string, files: readonly HandoffFile[]): string {
  return part(title, filesView(files), amountOf(files.length, 'file'))
}

/** @param json a text, or any other value */
function valueView (title: string, json: string, writing: Writing): string {
  if (json.startsWith('"')) {
    const text = JSON.parse(json) as string
    return part(title, writing.text(text), size(text.length))
  }
  if (/^\{\s*\}$/.test(json)) return ''
  const amount = /^[{[]/.test(json) ? `${amountOf(itemsIn(json), json.startsWith('{') ? 'member' : 'item')}, ` : ''
  return part(title, writing.json(json), amount + size(json.length))
}

const hidden = {
  not_addressee: 'Your key is held to other inboxes: what was passed isn’t shown to it.',
  payload_locked: 'What was passed, and what came of it, can’t be decrypted here: another replica may have the key.'
}

/** In its place: why it isn't shown. */
export function nothingShown (why: keyof typeof hidden): string {
  return html`<p class="quiet">${hidden[why]}</p>`
}
