import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    /** Is the service about to stop? Then it still serves, and says so to whoever would keep the connection. */
    draining: { now: boolean }
  }
}

/** Lets `app.draining.now` be set; answers carry `Connection: close` from then on. */
export function useDraining (app: FastifyInstance): void {
  const draining = { now: false }
  app.decorate('draining', draining)
  app.addHook('onRequest', (request, reply, done) => {
    if (draining.now) reply.header('connection', 'close')
    done()
  })
}
