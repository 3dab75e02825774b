import { withoutBase } from './base-path.ts'
import { answerSocketErrors } from './socket-errors.ts'

/** A request that isn't there whole after this is answered 408: within ten seconds of its start, when it is next looked at. */
const requestTimeout = 9500

/** Fastify's and node's defaults that must go, each with its reason. */
export function serverOptions (config: { bodyLimit: number, trustedProxies: string[], basePath: string }) {
  return {
    bodyLimit: config.bodyLimit,
    ...config.basePath !== '' && { rewriteUrl: withoutBase(config.basePath) },
    // Whose X-Forwarded-For says where a request came from. What links are built on doesn't depend on it (app.ts).
    trustProxy: config.trustedProxies.length > 0 && config.trustedProxies,
    // A HEAD on catch would run its GET handler and consume the handoff.
    exposeHeadRoutes: false,
    // A line a request costs half of what the request does (docs/architecture.md, "At the edge"), and a logger without lines still a child
    // logger and two listeners each: 3 to 4 µs of CPU (bench, mix). What there is to tell goes to the process's own.
    logger: false as const,
    // Draining refuses nothing (docs/deploy.md, "Stopping").
    return503OnClosing: false,
    forceCloseConnections: 'idle' as const,
    requestTimeout,
    // Longer than the balancers' idle timeout (commonly 60 s), so that it is never we who close a connection being reused.
    keepAliveTimeout: 75_000,
    routerOptions: {
      // A malformed id is a 404; only what is beyond any id is a 414.
      maxParamLength: 2048,
    },
    http: {
      // They take effect only when given here as well.
      requestTimeout,
      headersTimeout: requestTimeout,
      // By default half a minute, in which a slow request stays open past its time. All whose time is over by then end at once,
      // and everybody waits behind them: so often, and few at a time. A look at 2,000 takes 0.4 ms.
      connectionsCheckingInterval: 100,
      // Node's own refusal is no problem document; ours is in node-answers.ts.
      requireHostHeader: false,
    },
    clientErrorHandler: answerSocketErrors(config.basePath),
  }
}
