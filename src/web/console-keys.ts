import type { FastifyInstance } from 'fastify'
import { requireScope } from '../auth/scopes.ts'
import { shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { show } from './session.ts'
import { keysPage } from './views/console-keys.ts'
import { keyViewers } from './views/console-layout.ts'

/** A tenant's keys and limits. They are changed with the command alone. */
export function keyRoutes (app: FastifyInstance, { keyList, about }: Console): void {
  app.get('/keys', shows, async (request, reply) => {
    const { caller } = request
    requireScope(caller, keyViewers)
    const cursor = textOf(request.query, 'cursor')
    const keys = await keyList.of(caller.tenant, cursor)
    const { ratePerMinute } = about
    return show(reply, 200, keysPage({ caller, keys, ratePerMinute, isLater: cursor !== undefined }))
  })
}
