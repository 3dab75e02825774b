import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import type { Config } from './config.ts'
import { ApprovalService } from './handoff/approvals.ts'
import { HandoffService } from './handoff/service.ts'
import { Waiter } from './handoff/waiter.ts'
import { useAuth } from './http/auth.ts'
import { useJsonBodies } from './http/body.ts'
import { useCredentials } from './http/credentials.ts'
import { useDraining } from './http/drain.ts'
import { refuseUnknown } from './http/methods.ts'
import { useNodeAnswers } from './http/node-answers.ts'
import { useOpenApi } from './http/openapi.ts'
import { answerErrors } from './http/problem.ts'
import type { FaultLog } from './http/problem.ts'
import { endStalled } from './http/stalled.ts'
import { requestId } from './http/request-id.ts'
import { approvalRoutes } from './http/routes/approvals.ts'
import { catchRoute } from './http/routes/catch.ts'
import { doneRoute } from './http/routes/done.ts'
import { healthRoutes } from './http/routes/health.ts'
import { passRoute } from './http/routes/pass.ts'
import { problemsRoute } from './http/routes/problems.ts'
import { statusRoute } from './http/routes/status.ts'
import { serverOptions } from './http/server.ts'
import { useStrictValidation } from './http/validation.ts'
import { problem } from './schemas/problem.ts'
import type { ApiKeys } from './store/api-keys.ts'
import type { Store } from './store/store.ts'
import { approvalPages } from './web/pages.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

export interface AppDependencies {
  store: Pick<Store, 'handoffs' | 'approvals' | 'notices' | 'sessions' | 'whyNotReady'>
  keys: ApiKeys
  log: FaultLog
}

/** The whole service over HTTP, not yet listening. The process and the tests build the same one. */
export async function buildApp (config: Config, { store, keys, log }: AppDependencies): Promise<FastifyInstance> {
  const answerError = answerErrors(log)
  const app = Fastify({
    ...serverOptions(config),
    genReqId: requestId,
    frameworkErrors: answerError,
  })
  app.setErrorHandler(answerError)
  app.addSchema(problem)
  const waiter = new Waiter(store.notices)
  useDraining(app, () => waiter.drain(), config.drainTimeout)
  useStrictValidation(app)
  useNodeAnswers(app)
  endStalled(app)
  refuseUnknown(app)
  await useOpenApi(app, version)
  healthRoutes(app, store.whyNotReady)
  problemsRoute(app)

  const baseUrl = baseUrlOf(app, config)
  const service = new HandoffService(store.handoffs, waiter, {
    baseUrl,
    defaultExpiresIn: config.defaultExpiresIn,
  })
  const approvals = new ApprovalService(store.approvals, waiter)
  const credentials = await useCredentials(app, keys)
  app.addHook('onReady', async () => keys.start())
  app.addHook('onClose', async () => keys.stop())
  await app.register(async api => {
    api.addHook('onRequest', (request, reply, done) => {
      reply.header('x-request-id', request.id).header('cache-control', 'no-store')
      done()
    })
    await useAuth(api, credentials)
    useJsonBodies(api)
    passRoute(api, service, config.maxExpiresIn)
    catchRoute(api, service)
    doneRoute(api, service)
    statusRoute(api, service)
    approvalRoutes(api, approvals)
  })
  await app.register(pages => approvalPages(pages, { approvals, keys, credentials, sessions: store.sessions, baseUrl, log }), { prefix: '/approvals' })
  return app
}

/** What links are built on: BASE_URL, else where the service listens; never what a request's Host says. */
function baseUrlOf (app: FastifyInstance, config: Config): () => string {
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  let baseUrl = config.baseUrl ?? `http://${host}:${config.port}`
  app.addHook('onListen', async () => {
    const address = app.addresses()[0] as AddressInfo | undefined
    if (config.baseUrl === undefined && address !== undefined) baseUrl = `http://${host}:${address.port}`
  })
  return () => baseUrl
}
