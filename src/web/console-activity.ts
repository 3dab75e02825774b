import type { FastifyInstance } from 'fastify'
import { shows } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { show } from './session.ts'
import { activityPage } from './views/console-activity.ts'

/** What happens in the tenant, and how much of it. The overview has the same part, and renews it from here. */
export function activityRoutes (app: FastifyInstance, { activities }: Console): void {
  app.get('/activity', shows, async (request, reply) =>
    show(reply, 200, activityPage(request.caller, await activities.look(request.caller.tenant))))
}
