import type { FastifyRequest } from 'fastify'
import type { Caller, NeededScope } from '../core/model.ts'
import { hasScope } from '../auth/scopes.ts'

/** A failure, in plain words. */
export interface Trouble { title: string, text: string }

/** A person's action, in the words of error pages. */
export interface Doing {
  /** The words for a refused request: what has not happened. */
  nothing: string
  /** Where to do it, where another site sent the form. */
  instead: string
  /** The advice if it is unknown whether it has happened. */
  check: string
  tooLong: Trouble
}

/** Only looking at a page. */
export const looking: Doing = {
  nothing: 'nothing was changed',
  instead: 'Open the page itself.',
  check: 'Nothing was changed: try again.',
  tooLong: { title: 'The request is too large', text: 'So nothing was changed.' },
}

/** A request of a page, by its form or its script. */
type AskedOfPage = Pick<FastifyRequest, 'method' | 'url' | 'body' | 'headers'>

/** One of the two parts of the pages for people. */
export interface Area {
  /** In the titles of its pages. */
  name: string
  /** Its first page, and what it is called on the way back to it. */
  home: string
  homeName: string
  /** The words of the link back to a form's page. */
  backName: string
  /** The scope that a key needs to see any of its pages. */
  scope: NeededScope
  /** The page that a request came from: the one with the form, or the one that keeps itself up to date. */
  pageOf: (request: AskedOfPage) => string
  /** The words of its error pages about its forms, and about missing handoffs. */
  unchanged: Doing & { ended: string, missing: string, conflict: Trouble }
}

export const approvalsArea: Area = {
  name: 'Approvals',
  home: '/approvals',
  homeName: 'To the list',
  backName: 'Back to the handoff',
  scope: 'approve',
  pageOf (request) {
    const page = request.url.replace(/\/(approve|reject|answer|list|inside|standing)(\?.*)?$/, '')
    return page === approvalsArea.home ? page + placeInList(request) : page
  },
  unchanged: {
    nothing: 'nothing was decided',
    instead: 'Decide on the handoff’s own page.',
    ended: 'Your session has ended. Nothing was decided: sign in, and see what you typed again.',
    check: 'Check whether your decision was recorded before you decide again.',
    missing: 'This handoff never existed, is gone, or isn’t yours.',
    conflict: {
      title: 'There is nothing to decide', text: 'This handoff was passed without asking for a person’s approval.'
    },
    tooLong: { title: 'The note or the answer is too long', text: 'So nothing was decided. Write a shorter one.' },
  },
}

export const consoleArea: Area = {
  name: 'Console',
  home: '/console',
  homeName: 'To the console',
  backName: 'Back to the page',
  scope: ['status', 'operate'],
  // The address of each form is its page's with one more segment. A page that keeps itself up to date asks for itself.
  pageOf: ({ method, url }) => method === 'POST' ? url.replace(/\/[^/?]*(\?.*)?$/, '$1') : url,
  unchanged: {
    nothing: 'nothing was changed',
    instead: 'Do it on the console’s own page.',
    ended: 'Your session has ended. Nothing was changed: sign in, and do it again.',
    check: 'Check what was changed before you do it again.',
    missing: 'It never existed, is gone, or isn’t yours.',
    conflict: { title: 'This can’t be done', text: 'The handoff is in another state by now. Nothing was changed.' },
    tooLong: { title: 'The form is too large', text: 'So nothing was changed.' },
  },
}

/** The list's tab and filters, and where in it: by these names in the query of its poll, and as fields of its form. */
const placeNames = ['cursor', 'inbox', 'labels', 'q', 'order', 'tab']

function placeInList ({ url, body, headers }: AskedOfPage): string {
  // A poll names the tab that its page shows, also where the page's address has none. htmx says the address; that of a
  // form's answer is no page's.
  const shown = /\/approvals(\?[^#]*)?(#.*)?$/.exec(String(headers['hx-current-url'] ?? ''))
  const query = shown === null ? url.split('?')[1] : shown[1]
  const given = { ...Object.fromEntries(new URLSearchParams(query)), ...body as object | undefined }
  const place = Object.entries(given).filter(([name, value]) => placeNames.includes(name) && typeof value === 'string')
  return place.length === 0 ? '' : `?${String(new URLSearchParams(place as Array<[string, string]>))}`
}

const areas: readonly Area[] = [approvalsArea, consoleArea]

/** The areas that a key may see. */
export function areasOf (caller: Caller): Area[] {
  return areas.filter(({ scope }) => hasScope(caller, scope))
}
