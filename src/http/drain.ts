import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    /** Is the service about to stop? Then it still serves, and says so to whoever would keep the connection. */
    draining: { now: boolean, start: () => void }
  }
}

/** Lets `app.draining.start()` be called; answers carry `Connection: close` from then on. @param alsoThen what else begins then */
export function useDraining (app: FastifyInstance, alsoThen: () => void): void {
  const draining = {
    now: false,
    start () {
      draining.now = true
      alsoThen()
    },
  }
  app.decorate('draining', draining)
  app.addHook('onRequest', (request, reply, done) => {
    if (draining.now) reply.header('connection', 'close')
    done()
  })
}
