import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import closeWithGrace from 'close-with-grace'
import { buildApp } from './app.ts'
import { onStopSignal, stopSignals } from './clients/typescript/command/common/signals.ts'
import { loadProcessConfig } from './config.ts'
import type { Config } from './config.ts'
import { banner, startEmbedded } from './embedded/start.ts'
import type { Embedded } from './embedded/start.ts'
import { SettingError } from './core/errors.ts'
import { callerOf } from './core/model.ts'
import type { ApiKey } from './core/model.ts'
import { tags } from './core/ids.ts'
import { agentScopes, localPersonScopes } from './core/static-keys.ts'
import { mcpHosts } from './http/mcp-hosts.ts'
import { expiryLog } from './http/observe.ts'
import { openStdoutLog } from './log.ts'
import type { StdoutLog } from './log.ts'
import { KeyRing } from './auth/key-ring.ts'
import { newKeyId, newSecret } from './store/api-keys.ts'
import { PayloadKeys } from './core/payload-keys.ts'
import { openStore } from './store/store.ts'

/** How often Redis is checked for the log, in milliseconds. */
const readinessCheck = 5000

// The garbage collector moves young objects on one thread instead of several: a request waits until all of them are
// done, also those that have no core. With 10,000 waiting requests on two busy cores the p99 of a wake-up was 12.7 and
// 11.1 ms instead of 26.0 and 15.9; the CPU of pass, catch and done stayed the same with 64 agents, and was 7 % less
// with 128 (bench/README.md, "Waiting").
setFlagsFromString('--no-parallel-scavenge')

/** The process: settings, wiring, listening, signals, draining. */
async function main (): Promise<void> {
  const config = loadProcessConfig()
  const output = openStdoutLog(config.logLevel)
  const { log } = output
  const embedded = config.redisUrl === undefined
    ? await startEmbedded(config, log, () => newSecret(newKeyId()))
    : undefined
  try {
    await serve(config, output, embedded)
  } catch (error) {
    await embedded?.stop()
    throw error
  }
}

async function serve (
  config: Config, { log, print, lostLines, end }: StdoutLog, embedded: Embedded | undefined
): Promise<void> {
  const store = openStore({
    url: config.redisUrl ?? embedded!.socket,
    keyPrefix: config.keyPrefix,
    tags,
    workTtl: config.workTtl,
    retention: config.retention,
    eventsRetention: config.eventsRetention,
    listsEnded: config.listsEnded,
    decisionsRetention: config.decisionsRetention,
    runLabels: config.runLabels,
    payloadKeys: new PayloadKeys(config.payloadKeys),
    replicas: config.replicas,
    log,
    onExpired: expiryLog(log),
  })
  const keys = new KeyRing([...config.apiKeys, ...localKeys(embedded)], store, log)
  const app = await buildApp(
    config, { store, keys, log, lostLines, webhookSecret: config.webhookSecret ?? embedded?.webhookSecret }
  )
  const skip = [...stopSignals, ...faultSignals]
  const grace = closeWithGrace({ delay: config.drainTimeout, logger: log, skip }, async ({ err }) => {
    if (err) log.fatal({ err }, 'stopping after a fault')
    else log.info('draining')
    // First not ready, but still serving until balancers have noticed (docs/deploy.md, "Stopping").
    app.draining.start()
    // Stopped now, so that a call to a Redis that doesn't answer is over by the time the store closes.
    store.sweeper.stop()
    if (!err) await sleep(config.drainDelay)
    await app.close()
    const { cut } = app.draining
    if (cut > 0) log.warn({ connections: cut }, 'closed connections that did not end in time')
    await store.close()
    await embedded?.stop()
    log.info('stopped')
    await end()
  })
  onStopSignal(grace.close, () => process.exit(1))
  const address = await app.listen({ host: config.host, port: config.port })
  // After the service itself, so that it isn't reported ready before it is.
  const operations = await app.operatorsPort?.listen({ host: config.host, port: config.metricsPort! })
  store.sweeper.start()
  store.indexer.start()
  app.inboxRounds.start()
  store.relayRound?.start()
  store.payloadKeyNotes.start()
  app.deliverer?.start()
  app.ticker.start()
  app.fileSweep?.start()
  // So that the log has the reason even if /readyz isn't asked.
  setInterval(() => store.whyNotReady(), readinessCheck).unref()
  log.info({ address }, 'listening')
  if (operations !== undefined) log.info({ address: operations }, 'metrics and health listen')
  await embedded?.listensAt(address)
  if (embedded !== undefined) print(banner(address, embedded.keys, toolLines(address)))
  if (keys.count === 0) {
    log.info('none of API_KEYS, APPROVER_KEYS, OPERATOR_KEYS and READER_KEYS is set: only keys made with ' +
      '`handoff keys create` are accepted')
  }
}

/**
 * The kernel sends these for a fault of the process. A handler would return to the instruction that failed, again and
 * again: Node fails so at its end if its terminal is gone.
 */
const faultSignals = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'] as const

/** How each host of agents gets the tools, a line or two each. */
function toolLines (address: string): string {
  return mcpHosts(address).map(({ name, file, text }) => {
    const compact = text.startsWith('{') ? JSON.stringify(JSON.parse(text)) : text.replaceAll('\n', '\n    ')
    return `  ${name}${file === undefined ? '' : `, in ${file}`}:\n    ${compact}\n`
  }).join('')
}

/** The keys that were made for this machine, as callers of the default tenant. */
function localKeys (embedded: Embedded | undefined): ApiKey[] {
  if (embedded?.keys === undefined) return []
  return [
    { secret: embedded.keys.agentKey, caller: callerOf('default', 'agent', agentScopes) },
    { secret: embedded.keys.approverKey, caller: callerOf('default', 'approver', localPersonScopes) },
  ]
}

/** Prints a known error as one line, any other with its stack, and exits. */
function sayWhy (error: NodeJS.ErrnoException): void {
  const { code, syscall, name, message, stack } = error
  const known = error instanceof SettingError || code === 'EADDRINUSE' || code === 'EACCES' || name === 'EmbeddedError'
  // A name that has no address, or an address that this machine doesn't have.
  const isHost = syscall === 'getaddrinfo' || code === 'EADDRNOTAVAIL'
  process.stderr.write(isHost ? `HOST: the address to listen on: ${message}\n` : `${known ? message : stack}\n`)
  process.exit(1)
}

main().catch(sayWhy)
