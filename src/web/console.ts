import type { FastifyInstance } from 'fastify'
import { consoleArea } from './area.ts'
import { activityRoutes } from './console-activity.ts'
import { agentRoutes } from './console-agents.ts'
import { failedRoutes } from './console-failed.ts'
import { findRoutes } from './console-find.ts'
import { handoffRoutes } from './console-handoffs.ts'
import { inboxManyRoutes, inboxRoutes } from './console-inbox.ts'
import { overviewRoutes } from './console-overview.ts'
import type { ConsoleServices } from './console-routes.ts'
import { letPeopleIn, servePeople } from './people.ts'
import type { People } from './people.ts'

/** The pages on which operators see what there is, and steer it: everything below /console. */
export async function consolePages (app: FastifyInstance, pages: People & ConsoleServices): Promise<void> {
  const signIn = await servePeople(app, consoleArea, pages)
  await app.register(async own => {
    letPeopleIn(own, consoleArea, pages, signIn)
    overviewRoutes(own, pages)
    inboxRoutes(own, pages)
    inboxManyRoutes(own, pages)
    failedRoutes(own, pages)
    agentRoutes(own, pages)
    activityRoutes(own, pages)
    findRoutes(own, pages)
    handoffRoutes(own, pages)
  })
}
