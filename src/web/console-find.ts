import type { FastifyInstance } from 'fastify'
import { isId } from '../core/ids.ts'
import { wantedLabels } from '../core/labels.ts'
import { nothing, readList } from './console-lists.ts'
import { shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { redirect, show } from './session.ts'
import { findPage } from './views/console-find.ts'

/** How many handoffs of each list are shown, and how many pages of it are read for that at most. */
const read = { want: 50, pages: 8 }

interface Asked { Querystring: Record<string, unknown> }

/** Finds a handoff by its id, or those with a label. */
export function findRoutes (app: FastifyInstance, { lists }: Console): void {
  app.get<Asked>('/find', shows, async (request, reply) => {
    const { caller, query } = request
    const sought = (textOf(query, 'q') ?? '').trim()
    const id = idIn(sought)
    if (id !== undefined) return redirect(reply, `/console/handoffs/${id}`)
    const labels = sought.replace(/\s*,\s*/g, ',')
    if (sought === '' || wantedLabels(labels) === null) {
      return show(reply, 200, findPage({ caller, sought, found: null }))
    }
    const [state, cursor] = [textOf(query, 'state'), textOf(query, 'cursor')]
    const isOn = (state === 'live' || state === 'failed') && cursor !== undefined
    const of = (one: 'live' | 'failed') => isOn && one !== state
      ? nothing
      : readList(lists, request, { state: one, labels }, { ...read, cursor })
    const found = { live: await of('live'), failed: await of('failed') }
    return show(reply, 200, findPage({ caller, sought: labels, found, ...isOn && { state } }))
  })
}

/** The id that a person pasted, alone or at the end of an address. */
function idIn (text: string): string | undefined {
  return text.split(/[/?#\s]/).find(isId)
}
