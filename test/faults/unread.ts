import { requestTimeout } from './asking.ts'
import { clock } from './history.ts'
import { HttpClient } from './http-client.ts'

/** How often a probe is sent to each service (ms). Not more often: Node accepts one connection in each turn of the event loop, so probes delay the load. */
const interval = 250
/** Until a probe is given up (ms). */
const patience = 60_000

const probe = 'GET /healthz HTTP/1.1\r\nhost: service\r\nconnection: close\r\n\r\n'

/**
 * Watches how long services leave requests unread. On a busy machine that can be seconds: a new connection waits until it is accepted, while
 * requests on others are answered. The service carries out such a request even if its client has given up and left meanwhile, since its
 * bytes come before the end of the connection. Only from the reading on does its time count.
 */
export class Unread {
  readonly #client = new HttpClient(patience)
  readonly #timer: NodeJS.Timeout
  readonly #open = new Set<{ sent: number }>()
  #longest = 0

  constructor (urls: readonly string[]) {
    const probeAll = () => { for (const url of urls) this.#probe(url) }
    this.#timer = setInterval(probeAll, interval)
    probeAll()
  }

  /**
   * The longest time so far that a request may have been left unread (ms): what the probes have seen, but at least as long as the load's
   * clients wait, since a network may hold back the bytes of single connections.
   */
  get longest (): number {
    const now = clock()
    // Another request may have been sent just after a probe, and have waited longer than the next probe.
    return Math.max(requestTimeout, interval + Math.max(this.#longest, ...[...this.#open].map(({ sent }) => now - sent)))
  }

  stop (): void {
    clearInterval(this.#timer)
    this.#client.close()
  }

  async #probe (url: string): Promise<void> {
    const open = { sent: clock() }
    this.#open.add(open)
    const reply = await this.#client.ask(url, probe).catch(() => null)
    this.#open.delete(open)
    // A service that was killed read nothing.
    if (reply !== null) this.#longest = Math.max(this.#longest, clock() - open.sent)
  }
}
