import { maxNoteLength, rejectBody } from '../core/schemas/approvals.ts'

/** The note that a person sends with a decision or an answer. */

/** Well above the longest note that is accepted, so that the page can show a note that is too long again. */
export const form = { schema: { hide: true }, bodyLimit: 512 * 1024, config: { showsAgain: true } }

/** On the page of a form that was sent without a session, before it is sent again. */
export const sentAgain = 'You have signed in again. Look at what you typed, and send it.'
const noteCharacters = new RegExp(rejectBody.properties.note.pattern as string)

/** The note as typed: forms send each line break as CRLF. */
export function noteOf (form: Record<string, unknown> | undefined): string {
  const note = form?.note
  return typeof note === 'string' ? note.replaceAll('\r\n', '\n').trim() : ''
}

/** Why a note is refused, in plain words. */
export function faultOfNote (note: string): string | undefined {
  const length = [...note].length
  if (length > maxNoteLength) return `The note has ${length} characters; at most ${maxNoteLength} are allowed.`
  if (!noteCharacters.test(note)) {
    return 'The note contains invisible control characters. Type it instead of pasting it.'
  }
  return undefined
}
