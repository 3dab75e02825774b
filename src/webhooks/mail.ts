import { addAbortListener, once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { createTransport } from 'nodemailer'
import { Lookups } from '../core/lookups.ts'
import { domainOf, mailFault } from '../core/mail.ts'
import type { MailSettings } from '../core/mail.ts'
import { attemptTimeout } from './sender.ts'
import type { Answer } from './sender.ts'

/** A mail, without its sender. The id is the same in every attempt. */
interface NewMail { to: string, id: string, at: Date, subject: string, text: string }

/** The address of a mailto: URL; null for any other URL. */
export function addressIn (url: string): string | null {
  return /^mailto:/i.test(url) ? url.slice('mailto:'.length) : null
}

/** Sends mail through the operator's server. */
export class Mailer {
  readonly #settings: MailSettings
  readonly #timeout: number
  readonly #lookups: Lookups
  readonly #open = new Set<AbortController>()

  /** @param timeout milliseconds; tests have a shorter one */
  constructor (settings: MailSettings, timeout = attemptTimeout) {
    this.#settings = settings
    this.#timeout = timeout
    this.#lookups = new Lookups({ atOnce: 4 })
  }

  /** Why no mail may go to this address; null if it may. */
  faultOf (address: string): string | null {
    return mailFault(this.#settings, address)
  }

  /** Sends a mail once. It never throws: whatever goes wrong is how the attempt went. */
  async send ({ to, id, at, subject, text }: NewMail): Promise<Answer> {
    const how = { status: null, error: null, retryAfter: null, over: Promise.resolve() }
    if (this.faultOf(to) !== null) return { ...how, error: 'target_refused' }
    const { from } = this.#settings
    const attempt = new AbortController()
    const timer = setTimeout(() => attempt.abort(), this.#timeout)
    this.#open.add(attempt)
    try {
      const { response } = await this.#transport(attempt.signal).sendMail({
        from,
        // As an object it is one address, whatever it is made of.
        to: { name: '', address: to },
        envelope: { from: from.address, to: [to] },
        messageId: `<${id}@${domainOf(from.address)}>`,
        date: at,
        subject,
        text,
        // So that no out-of-office reply comes back: RFC 3834, and what Exchange reads.
        headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
        disableFileAccess: true,
        disableUrlAccess: true,
      })
      return { ...how, status: Number(/^2\d\d/.exec(response)?.[0] ?? 250) }
    } catch (error) {
      const { code, responseCode } = error as { code?: string, responseCode?: number }
      if (attempt.signal.aborted) return { ...how, error: 'timeout' }
      // Only a reply that refuses counts: the last one may be of an earlier step.
      if (responseCode !== undefined && responseCode >= 400) return { ...how, status: responseCode }
      return { ...how, error: /^\w{1,64}$/.test(code ?? '') ? code! : 'failed' }
    } finally {
      clearTimeout(timer)
      // Whatever is open of it.
      attempt.abort()
      this.#open.delete(attempt)
    }
  }

  /** Ends the attempts under way. */
  close (): void {
    this.#lookups.close()
    for (const attempt of this.#open) attempt.abort()
  }

  #transport (signal: AbortSignal) {
    const { server: { host, port, isTls, isLoopback }, auth } = this.#settings
    return createTransport({
      host,
      port,
      secure: isTls,
      // The password goes over TLS alone, except to this machine, whose certificate can't be checked.
      requireTLS: !isTls && !isLoopback && auth !== undefined,
      ignoreTLS: !isTls && isLoopback,
      ...auth !== undefined && { auth },
      greetingTimeout: this.#timeout,
      socketTimeout: this.#timeout,
      getSocket: (_, done) => {
        this.#connect(signal).then(connection => done(null, { connection }), error => done(error as Error, false))
      },
    })
  }

  /** A socket of our own, which the signal closes at any point: the server may say a little again and again. */
  async #connect (signal: AbortSignal): Promise<Socket> {
    const { host, port } = this.#settings.server
    const socket = connect({ host, port, lookup: this.#lookups.functionFor('mail') })
    socket.on('error', () => {})
    addAbortListener(signal, () => socket.destroy(Object.assign(new Error('ended'), { code: 'ended' })))
    await once(socket, 'connect')
    return socket
  }
}
