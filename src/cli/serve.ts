import { loadConfig } from '../config.ts'
import type { Config } from '../config.ts'
import { Failure } from '../clients/typescript/command/output.ts'

/**
 * Runs the service in this process, as `node dist/main.js` does. The import starts it. This never returns: the service
 * ends the process itself.
 */
export async function serve (): Promise<never> {
  await import('../main.ts')
  return new Promise(() => {})
}

/**
 * Milliseconds. Less than the three seconds after which a container engine gives up, so that the reason is in its log.
 */
const answerTimeout = 2500

/** Checks that the service with these settings answers on this machine. @throws {Failure} it doesn't */
export async function healthcheck (): Promise<void> {
  const url = healthUrl(loadConfig())
  let answer: Response
  try {
    answer = await fetch(url, { signal: AbortSignal.timeout(answerTimeout), headers: { connection: 'close' } })
    await answer.arrayBuffer()
  } catch (error) {
    throw new Failure(`${url} does not answer: ${reasonOf(error as Error)}`)
  }
  if (!answer.ok) throw new Failure(`${url} answers ${answer.status}`)
}

/** With METRICS_PORT, /healthz is on that port. */
function healthUrl ({ host, metricsPort, port: mainPort }: Config): string {
  const port = metricsPort ?? mainPort
  if (port === 0) {
    throw new Failure(`${metricsPort === 0
    ? 'METRICS_PORT'
    : 'PORT'} is 0: this command can’t know which port the service got`)
  }
  // A service that listens on all addresses listens on loopback too.
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}/healthz`
}

function reasonOf (error: Error): string {
  if (error.name === 'TimeoutError') return `nothing within ${answerTimeout / 1000} s`
  const { code, message } = (error.cause ?? error) as NodeJS.ErrnoException
  return code ?? message
}
