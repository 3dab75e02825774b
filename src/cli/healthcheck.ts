import { loadConfig } from '../config.ts'
import type { Config } from '../config.ts'
import { Failure } from './failure.ts'

/** Milliseconds. An engine that waits three seconds hears why. */
const answerTimeout = 2500

/** Asks the service that has these settings, on this machine, whether it answers. @throws {Failure} it doesn't */
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

/** Where METRICS_PORT sets the operational routes apart, it is there. */
function healthUrl ({ host, metricsPort, port: mainPort }: Config): string {
  const port = metricsPort ?? mainPort
  if (port === 0) throw new Failure(`${metricsPort === 0 ? 'METRICS_PORT' : 'PORT'} is 0: which port the service was given is not known here`)
  // Who listens on all addresses listens on the loopback one.
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}/healthz`
}

function reasonOf (error: Error): string {
  if (error.name === 'TimeoutError') return `nothing within ${answerTimeout / 1000} s`
  const { code, message } = (error.cause ?? error) as NodeJS.ErrnoException
  return code ?? message
}
