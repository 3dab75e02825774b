import type { FastifyInstance } from 'fastify'
import { SettingError } from './core/errors.ts'
import type { Config } from './config.ts'
import { filePartsOf } from './files/parts.ts'
import type { FileTrials } from './files/parts.ts'
import type { FileSweep } from './files/sweep.ts'
import { Activities } from './handoffs/lists/activity.ts'
import { ApprovalService } from './handoffs/people/approvals.ts'
import { AskService } from './handoffs/people/asks.ts'
import { AttemptService } from './handoffs/lifecycle/attempts.ts'
import { Explanations } from './handoffs/lifecycle/explain.ts'
import { HandoffService } from './handoffs/lifecycle/service.ts'
import { DecisionService } from './handoffs/people/decisions.ts'
import { signerOf } from './handoffs/people/signer.ts'
import { EverythingService } from './handoffs/lifecycle/everything.ts'
import { EventService, EventStreams } from './handoffs/feed/events.ts'
import { MessageExcerpts } from './webhooks/message-excerpts.ts'
import { Graphs } from './handoffs/lists/graph.ts'
import { Histories } from './handoffs/lists/histories.ts'
import { ResultSchemas } from './result-schema/result-schemas.ts'
import { InboxService } from './handoffs/inbox/inboxes.ts'
import { InboxSettingsService } from './handoffs/inbox/settings.ts'
import { ListService } from './handoffs/lists/lists.ts'
import { ManyHandoffs } from './handoffs/wait/many.ts'
import { AfterService } from './handoffs/lifecycle/after.ts'
import { HandoffFiles } from './handoffs/lifecycle/files.ts'
import { Quotas } from './handoffs/lifecycle/quotas.ts'
import { OperateService } from './handoffs/lifecycle/operate.ts'
import { RunGraphs } from './handoffs/lists/run-graph.ts'
import { RunService } from './handoffs/lists/runs.ts'
import { Titles } from './handoffs/lists/titles.ts'
import { ScheduleCounts, Runner } from './handoffs/schedules/runs.ts'
import { ScheduleService } from './handoffs/schedules/service.ts'
import { Ticker } from './handoffs/schedules/ticker.ts'
import { PeopleService } from './handoffs/people/people.ts'
import { Streams } from './handoffs/wait/streams.ts'
import { Waiter } from './handoffs/wait/waiter.ts'
import { WorkerService } from './handoffs/inbox/workers.ts'
import { countGuesses, useAuth } from './http/auth.ts'
import { baseUrlOf } from './http/base-url.ts'
import { shedLate, useBudgets } from './http/overload.ts'
import type { RefusedCounts } from './http/overload.ts'
import { Bodies, useJsonBodies } from './http/body.ts'
import { Credentials } from './auth/credentials.ts'
import { KeyList } from './auth/key-list.ts'
import type { KeyRing } from './auth/key-ring.ts'
import { SignInIssuers } from './auth/sign-in-issuers.ts'
import { TokenRing } from './auth/token-ring.ts'
import { useDraining } from './http/connections.ts'
import { noteEndpoints, useOpenApi } from './http/openapi.ts'
import { Requests, logOperated, logTransitions } from './http/observe.ts'
import type { RequestLog } from './http/observe.ts'
import { bareApp, serverOptions } from './http/server.ts'
import { useRateLimit } from './http/rate-limit.ts'
import { letAnswersArrive } from './http/unread-bodies.ts'
import { Batches, batchRoute } from './http/batch.ts'
import { operationRoutes } from './http/operations.ts'
import { useSchemas } from './http/schemas.ts'
import { operationsOf } from './operations/table.ts'
import { readClients } from './http/clients.ts'
import { llmsRoute, skillRoutes } from './http/routes/agent-texts.ts'
import { fileRoutes } from './http/routes/files.ts'
import { healthRoutes } from './http/routes/health.ts'
import { jwksRoute } from './http/jwks.ts'
import { a2aCards } from './a2a/card-route.ts'
import { PushMessages } from './a2a/push-messages.ts'
import { a2aRoute } from './a2a/route.ts'
import { serverCard } from './mcp/card.ts'
import { ResourceMetadata } from './mcp/resource-metadata.ts'
import { mcpPreflight, mcpRoute, originCheck } from './mcp/route.ts'
import { InboxRounds } from './metrics/inboxes.ts'
import { makeRegistry, metricsRoute } from './metrics/registry.ts'
import { scheduledHandoff } from './core/schemas/schedules.ts'
import { compile, nestedIn } from './core/validator.ts'
import { whyFull } from './store/health.ts'
import { Reads } from './store/reads.ts'
import type { Store } from './store/store.ts'
import { maxWebhooks } from './store/webhooks.ts'
import { version } from './core/version.ts'
import { answerStray } from './web/error-pages.ts'
import { consolePages } from './web/console.ts'
import { issuerPages } from './web/issuer-sign-in.ts'
import { approvalPages, openPages } from './web/pages.ts'
import type { People } from './web/people.ts'
import { CallbackService } from './webhooks/callback-service.ts'
import { Deliverer } from './webhooks/deliverer.ts'
import { Mailer } from './webhooks/mail.ts'
import { targetsFor, webhookParts } from './webhooks/parts.ts'
import type { WebhookTrials } from './webhooks/parts.ts'
import { WebhookService } from './webhooks/service.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * The instance for operators and probes, if it has a port of its own (METRICS_PORT). It isn't listening yet, and
     * closes after the service.
     */
    operatorsPort: FastifyInstance | undefined
    /**
     * Sends events to webhooks, and callbacks, where there is a secret for them. The caller's to start; it stops with
     * the service.
     */
    deliverer: Deliverer | null
    /** Counts what inboxes have, for the metrics. The caller's to start; it stops with the service. */
    inboxRounds: InboxRounds
    /** Runs schedules. The caller's to start; it stops with the service. */
    ticker: Ticker
    /** Removes files that nothing has. The caller's to start; it stops with the service. Null without a store. */
    fileSweep: FileSweep | null
  }
}

export interface AppDependencies {
  store: Omit<Store, 'close' | 'masters'>
  keys: KeyRing
  log: RequestLog & { warn (details: object, message: string): void }
  /** How many lines of the log could not be written. */
  lostLines?: () => number
  /** What WEBHOOK_SECRET says, or what is kept in its place; undefined: webhooks are off. */
  webhookSecret?: string | undefined
  /** Tests resolve names otherwise, and wait less. */
  webhooks?: WebhookTrials | undefined
  /** Tests keep less of the disk free, and wait less. */
  files?: FileTrials | undefined
}

/** Builds the whole HTTP service, not yet listening. The process and the tests use the same one. */
export async function buildApp (
  config: Config, { store, keys, log, lostLines, ...more }: AppDependencies
): Promise<FastifyInstance> {
  const requests = new Requests()
  const canSignIn = config.issuers.some(({ signIn }) => signIn !== null)
  const { basePath, issuers, a2aRoot: root, a2aWait: wait, signing } = config
  const app = bareApp(serverOptions(config), requests, log, basePath, answerStray)
  const refused: RefusedCounts = { limited: 0, shed: 0, bodies: 0 }
  app.decorate('refused', refused)
  const bodies = new Bodies(config.bodiesLimit, refused)
  bodies.watch(app)
  const shed = shedLate(app, refused)
  const reads = new Reads(store, { bytes: config.bodiesLimit, maxBytes: config.bodyLimit })
  useBudgets(app, reads)
  const waiter = new Waiter(store.subscriptions)
  const inboxes = new InboxService(store.inboxes, store.subscriptions, waiter, reads, config.workTtl)
  app.addHook('onClose', async () => inboxes.close())
  const baseUrl = baseUrlOf(app, config, log)
  const known = { handoffs: store.handoffs, retention: config.retention }
  const events = new EventService(store.events, waiter, baseUrl, known, reads)
  const streams = new EventStreams(events)
  const taskStreams = new Streams(20, 'tasks')
  const parts = webhookParts(config, baseUrl, store, more)
  const callbacks = new CallbackService(parts && { ...parts, callbacks: store.callbacks })
  const acceptCallback = (text: Buffer) => callbacks.accept(text)
  const deliverer = parts === null
    ? null
    : new Deliverer({
      ...parts,
      targets: targetsFor(config, maxWebhooks, more),
      allowed: { webhooks: config.webhookAllow, mail: config.mail?.allow ?? null },
      mailer: config.mail === undefined ? null : new Mailer(config.mail, more.webhooks?.attemptTimeout),
      excerpts: new MessageExcerpts(store.handoffs, store.asks),
      pushes: new PushMessages({ configs: store.pushConfigs, tasks: store.tasks, callbacks: store.callbacks }),
      store,
      log,
      attemptTimeout: more.webhooks?.attemptTimeout
    })
  app.decorate('deliverer', deliverer)
  app.addHook('onClose', async () => deliverer?.stop())
  // Before the server waits for the requests that are open: a name server may be silent for longer.
  app.addHook('preClose', async () => parts?.targets.close())
  useDraining(app, () => {
    for (const one of [waiter, streams, taskStreams]) one.drain()
  }, config.drainTimeout)
  letAnswersArrive(app)
  useSchemas(app)
  const logMoved = logTransitions(app, log)
  await useOpenApi(app, version, baseUrl)
  const endpoints = noteEndpoints(app)
  const isDraining = () => app.draining.now
  const fault = (what: string) => (error: unknown) => log.error({ err: error }, what)
  const rounds = new InboxRounds(store, config.metricsInboxes, fault('counting the inboxes failed'))
  rounds.limited = () => keys.limits.withMaxLive()
  app.decorate('inboxRounds', rounds)
  app.addHook('onClose', async () => rounds.stop())
  const ticks = new ScheduleCounts()
  const tokens = config.issuers.length === 0
    ? null
    : new TokenRing({ issuers: config.issuers, baseUrl, ring: keys, output: log })
  const { files, directory, sweep, counts: transfers } =
    filePartsOf(config, baseUrl, store, reads, log, fault('sweeping files failed'), more.files)
  app.decorate('fileSweep', sweep)
  app.addHook('onClose', async () => await sweep?.stop())
  const { registry, close } = makeRegistry({
    requests,
    waiter,
    inboxes,
    rounds,
    streams,
    store,
    keys: keys.counts,
    tokens,
    refused,
    bodies,
    deliverer,
    ticks,
    transfers,
    sweep,
    isDraining,
    lostLines,
    version
  })
  app.addHook('onClose', async () => close())
  // A slow client of the operators' port isn't waited for: by then the service itself has stopped.
  const operatorsPort = config.metricsPort === undefined
    ? undefined
    : bareApp({ ...serverOptions(config), forceCloseConnections: true }, requests, log, basePath)
  app.decorate('operatorsPort', operatorsPort)
  app.addHook('onClose', async () => operatorsPort?.close())
  healthRoutes(operatorsPort ?? app, async (mayBeFull) => isDraining()
    ? 'The service is stopping.'
    : await store.whyNotReady() ?? (store.isFull && !mayBeFull ? whyFull : await keys.limits.whyUnknown()))
  metricsRoute(operatorsPort ?? app, registry)

  const clients = readClients()
  llmsRoute(app, endpoints, { baseUrl, workTtl: config.workTtl, clients })
  skillRoutes(app, baseUrl, clients)
  serverCard(app, baseUrl)
  jwksRoute(app, signing)
  await openPages(app, { endpoints, baseUrl, clients })
  const workers = new WorkerService(store.listeners, reads, fault('noting the workers failed'))
  app.addHook('onClose', async () => await workers.close())
  const inboxSettings = new InboxSettingsService(store.inboxes, reads, workers)
  const explanations = new Explanations(store.listeners, inboxSettings, workers, store.payloadKeyNotes)
  const schemas = new ResultSchemas()
  app.addHook('onClose', async () => schemas.close())
  const after = new AfterService(store.handoffs, store.dependents, reads)
  const handoffFiles = new HandoffFiles(files)
  const handoffs = new HandoffService(store.handoffs, waiter, schemas, after, reads, {
    baseUrl,
    defaultExpiresIn: config.defaultExpiresIn,
    hopLimit: config.hopLimit,
    runLabels: config.runLabels,
    explain: (place, seen) => explanations.of(place, seen),
    acceptCallback,
    quotas: new Quotas(keys.limits, store),
    files: handoffFiles
  })
  const work = { baseUrl, maxWorkTtl: config.maxWorkTtl }
  const attempts = new AttemptService(store.attempts, after, work)
  const limits = { maxExpiresIn: config.maxExpiresIn / 1000, maxWorkTtl: config.maxWorkTtl / 1000 }
  const many = new ManyHandoffs(store.handoffs, waiter, reads)
  const lists = new ListService(store.lists, reads, config)
  const runs = new RunService(store.runs, reads, config.runLabels)
  const approvals = new ApprovalService(store.approvals, store.lists, store.handoffs, reads, signerOf(signing, baseUrl))
  const asks = new AskService(store.asks, store.lists, waiter, schemas, reads, work)
  const decisions = new DecisionService(store.decisions, store.lists, reads, canSignIn, config)
  const forPeople = new PeopleService(approvals, asks, decisions, waiter)
  const operate = new OperateService(store.lists, store.attempts, reads, config.runLabels)
  const { events: feeds, webhooks: hooks } = store
  const webhooks = new WebhookService(
    parts === null || feeds === null || hooks === null ? null : { ...parts, events: feeds, webhooks: hooks }, reads
  )
  const template = scheduledHandoff(limits)
  const nested = nestedIn(template)
  const runner = new Runner({
    handoffs, store: store.handoffs, attempts: store.attempts, nested, onMoved: moved => requests.count(moved)
  })
  const schedules = new ScheduleService(
    store.schedules, runner, { validate: compile(template), nested, schemas, acceptCallback, counts: ticks }
  )
  const ticker = new Ticker({ store, runner, counts: ticks, onFault: fault('running schedules failed') })
  app.decorate('ticker', ticker)
  app.addHook('onClose', async () => ticker.stop())
  if (directory !== null) {
    const routes = { store: directory, files, counts: transfers, idle: more.files?.idle }
    await app.register(bytes => fileRoutes(bytes.addHook('onRequest', shed), routes), { prefix: '/files' })
  }
  const operations = operationsOf({
    handoffs,
    files,
    handoffFiles,
    everything: new EverythingService(store.everything, reads, config.bodyLimit),
    attempts,
    inboxes,
    workers,
    after,
    inboxSettings,
    cards: store.cards,
    approvals,
    decisions,
    asks,
    many,
    lists,
    runs,
    operate,
    events,
    streams,
    webhooks,
    callbacks,
    schedules,
    limits
  })
  const guessesOf = await countGuesses(app)
  const signIns = tokens === null || !canSignIn ? null : new SignInIssuers(config.issuers, tokens)
  const credentials = new Credentials(keys, tokens, signIns)
  app.addHook('onReady', async () => {
    keys.start()
    tokens?.start()
  })
  app.addHook('onClose', async () => {
    keys.stop()
    await tokens?.checker.stop()
  })
  const limit = (instance: FastifyInstance) =>
    useRateLimit(instance, store.rates, config.ratePerMinute, keys.limits, refused)
  const forMcp = config.issuers.filter(({ isForMcp }) => isForMcp)
  const metadata = forMcp.length === 0 ? null : new ResourceMetadata(app, forMcp, baseUrl)
  const isAllowed = originCheck(config.mcpOrigins, config.baseUrl !== undefined, baseUrl)
  mcpPreflight(app, config.mcpOrigins, isAllowed)
  const gate = { credentials, guessesOf, shed, limit }
  const shownOnCards = { issuers, pushes: parts !== null, signs: signing.current }
  const cards = await a2aCards(app, store.cards, gate, { ...shownOnCards, baseUrl, root })
  await app.register(async api => {
    api.addHook('onRequest', shed)
    api.addHook('onRequest', (request, reply, done) => {
      reply.header('x-request-id', request.id).header('cache-control', 'no-store')
      done()
    })
    await useAuth(api, credentials, guessesOf)
    limit(api)
    useJsonBodies(api, bodies, Math.min(config.bodyLimit, config.batchLimit))
    operationRoutes(api, operations, log)
    const onFault = (error: unknown, id: string) => log.error({ err: error, request_id: id }, 'internal error')
    const batches = new Batches(operations, requests, config.bodyLimit, (error, { requestId }) =>
      onFault(error, requestId))
    batchRoute(api, batches, { sizes: requests.batchSizes, bodyLimit: config.batchLimit, log })
    const room: Pick<Parameters<typeof mcpRoute>[1], 'operations' | 'onMoved' | 'onFault'> = {
      operations,
      onMoved (request, { moved, operated, traceparent }) {
        logOperated(log, request, operated)
        requests.count(moved)
        logMoved(request, moved, traceparent)
      },
      onFault: (error, request) => onFault(error, request.id),
    }
    mcpRoute(api, { ...room, metadata, isAllowed, requests })
    const pushes = parts && { configs: store.pushConfigs, targets: parts.targets }
    const a2a = { tasks: store.tasks, pushes, files: handoffFiles, streams: taskStreams, reads, waiter, cards, wait }
    a2aRoute(api, { ...room, ...a2a, requests })
  })
  const people: People = {
    credentials,
    keys,
    signIns,
    takesKeys: config.takesKeys,
    sessionLength: config.sessionLength,
    guessesOf,
    sessions: store.sessions,
    bodies,
    baseUrl,
    shed,
    limit,
    log,
    operations,
    refused: code => requests.refused(code)
  }
  const ofPeople = { approvals, asks, forPeople, decisions }
  await app.register(pages => approvalPages(pages, { ...ofPeople, ...people }), { prefix: '/approvals' })
  await app.register(pages => issuerPages(pages, people), { prefix: '/sign-in' })
  const histories = new Histories(store.handoffs, events, reads)
  const graphs = new Graphs(store.handoffs, store.dependents, reads)
  const activities = new Activities(events)
  const shown = {
    approvals,
    inboxSettings,
    lists,
    histories,
    graphs,
    activities,
    runs,
    workers,
    webhooks,
    titles: new Titles(store.descriptions, reads),
    runGraphs: new RunGraphs(store, reads, config.listsEnded),
    keyList: new KeyList(keys, store, reads),
    memory: () => store.memory(),
    about: config
  }
  await app.register(pages => consolePages(pages, { ...shown, ...people }), { prefix: '/console' })
  app.addHook('onReady', async () => refuseOwnPath(basePath, requests))
  return app
}

/**
 * BASE_URL's path must not begin like one of the service's own paths: then it would be unknown whether a proxy has
 * removed it.
 */
function refuseOwnPath (basePath: string, { routes }: Requests): void {
  if (basePath === '' || !routes.some(({ route }) => `${route}/`.startsWith(`${basePath}/`))) return
  throw new SettingError(`BASE_URL: ${basePath} is the service’s own; take another path`)
}
