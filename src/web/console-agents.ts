import type { FastifyInstance } from 'fastify'
import { isName } from '../core/model.ts'
import { nothing, readList } from './console-lists.ts'
import { shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { show } from './session.ts'
import { agentsPage } from './views/console-agents.ts'

/** How many handoffs are read for one page, and how many pages of the list for that at most. */
const read = { want: 300, pages: 6 }

interface Asked { Querystring: Record<string, unknown> }

/** Who holds what. */
export function agentRoutes (app: FastifyInstance, { lists }: Console): void {
  app.get<Asked>('/agents', shows, async (request, reply) => {
    const { caller, query } = request
    const agent = textOf(query, 'agent')
    const cursor = textOf(query, 'cursor')
    const wanted = agent === undefined ? {} : { caught_by: agent }
    const isKnowable = agent === undefined || isName(agent)
    const part = isKnowable ? await readList(lists, request, wanted, { ...read, cursor, caught: true }) : nothing
    return show(reply, 200, agentsPage({ caller, part, agent, isLater: cursor !== undefined }))
  })
}
