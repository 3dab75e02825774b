/** What Node's fetch sends requests with, undici's dispatcher, as far as it is known here. */
export interface Connections {
  dispatch (options: object, handler: { onConnect?: OnConnect }): boolean
  close (): Promise<void>
  destroy (): Promise<void>
}

/** Called when a request gets its connection, with what ends the two. */
type OnConnect = (abort: (reason: Error) => void, ...more: unknown[]) => void

/** What is asked for. */
export interface Wanted { method: string, headers: Record<string, string>, body?: string | undefined }

/** Where Node's fetch keeps its connections. */
const dispatcherKey = Symbol.for('undici.globalDispatcher.1')

/** Those of fetch. @returns undefined where the runtime has no such thing, or it was replaced */
function keptConnections (): Connections | undefined {
  const found = (globalThis as { [dispatcherKey]?: Connections })[dispatcherKey]
  return found?.constructor.name === 'Agent' ? found : undefined
}

/**
 * New connections. Where one of those that fetch keeps is dead and says nothing, the others are dead as well, and it
 * would take one after the other.
 * @returns undefined where the runtime has no such thing, or it was replaced
 */
export function newConnections (): Connections | undefined {
  const found = keptConnections()
  return found && new (found.constructor as new () => Connections)()
}

/** The fetch that was seen to send its requests through what it is given. */
let known: unknown

/**
 * What ends one request of fetch. In Node a signal costs more CPU than everything else that the client does for a call,
 * so a request goes out through this instead, which learns how to end it. Where that isn't known to go, there is a
 * signal as well.
 */
export class Ending {
  readonly #connections: Connections | undefined
  readonly #controller: AbortController | undefined
  readonly #fetch = globalThis.fetch
  #abort: ((reason: Error) => void) | undefined
  #isOver = false

  /**
   * @param own whether it is sent with the runtime's own fetch
   * @param connections instead of those that fetch keeps
   */
  constructor (own: boolean, connections: Connections | undefined) {
    this.#connections = own ? connections ?? keptConnections() : undefined
    if (this.#connections === undefined || known !== this.#fetch) this.#controller = new AbortController()
  }

  /** What fetch is given for it. One literal: what is put together of several is looked up slowly. */
  initOf ({ method, headers, body }: Wanted): RequestInit {
    const signal = this.#controller?.signal
    // A redirect isn't followed: the payload would go to an address that wasn't configured.
    const redirect = 'manual'
    return (this.#connections === undefined
      ? { method, headers, body, redirect, signal }
      // The types of RequestInit depend on the runtime.
      : { method, headers, body, redirect, signal, dispatcher: this }) as object
  }

  end (): void {
    this.#isOver = true
    this.#controller?.abort()
    this.#abort?.(new Error('The request was ended.'))
  }

  /** fetch calls this. */
  dispatch (options: object, handler: { onConnect?: OnConnect }): boolean {
    const { onConnect } = handler
    if (onConnect !== undefined) {
      known = this.#fetch
      handler.onConnect = (abort, ...more) => {
        this.#abort = abort
        onConnect.call(handler, abort, ...more)
        // It was ended before it had a connection.
        if (this.#isOver) this.end()
      }
    }
    return this.#connections!.dispatch(options, handler)
  }
}
