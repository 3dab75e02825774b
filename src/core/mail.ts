import { isIP } from 'node:net'

/** Through which server mail goes, from whom, and to whom it may. */
export interface MailSettings {
  server: { host: string, port: number, isTls: boolean, isLoopback: boolean }
  auth: { user: string, pass: string } | undefined
  from: { name: string, address: string }
  /** Domains and addresses, in small letters. */
  allow: readonly string[]
}

const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const domain = new RegExp(`^(?=.{1,253}$)${label}(?:\\.${label})*$`)
/**
 * Fewer characters than RFC 5322 lets stand without quotes. The others mean something to some mail servers:
 * `a!evil.org@example.com` and `a%evil.org@example.com` may go on to evil.org, `|` starts a program, a hyphen in front
 * begins an option of one, and `=` separates an address within an address. What is allowed is the domain behind the
 * last @, so nothing before it may lead elsewhere.
 */
const local = /^(?![.-])(?!.*\.\.)[A-Za-z0-9'+_.-]{1,64}(?<!\.)$/

/** The domain of a plain mail address; null if the text is none, or needs quotes or another alphabet. */
export function domainOf (address: string): string | null {
  const at = address.lastIndexOf('@')
  const of = address.slice(at + 1)
  return at > 0 && local.test(address.slice(0, at)) && domain.test(of) ? of : null
}

/** Why no mail may go to this address; null if it may. */
export function mailFault ({ allow }: Pick<MailSettings, 'allow'>, address: string): string | null {
  const of = domainOf(address)
  if (of === null) return 'must be mailto: and one plain address, of A-Z a-z 0-9 \' + _ . - before the @, without more'
  return allow.includes(address.toLowerCase()) || allow.includes(of.toLowerCase())
    ? null
    : 'must be an address that MAIL_ALLOW names, or of a domain that it names; the service’s operator may add it'
}

/** The server of SMTP_URL; null if it is malformed. */
export function serverOf (text: string): Pick<MailSettings, 'server' | 'auth'> | null {
  if (!/^smtps?:\/\/[^/?#\s]+\/?$/.test(text) || !URL.canParse(text)) return null
  const { protocol, hostname, port, username, password } = new URL(text)
  const isTls = protocol === 'smtps:'
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) === 0 && !domain.test(host)) return null
  if ((username === '') !== (password === '')) return null
  try {
    const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)]
    return {
      server: { host, port: Number(port) || (isTls ? 465 : 587), isTls, isLoopback: isLoopback(host) },
      auth: user === '' ? undefined : { user, pass }
    }
  } catch {
    return null
  }
}

/** Is it this machine? */
export function isLoopback (host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** The sender of MAIL_FROM: an address, or a name and an address in angle brackets; null if it is malformed. */
export function senderOf (text: string): MailSettings['from'] | null {
  const [, name = '', inside] = /^([A-Za-z0-9 ._'-]{0,64}?) *<([^<>]*)>$/.exec(text) ?? []
  const address = inside ?? text
  return domainOf(address) === null ? null : { name, address }
}

/** Can it be an entry of MAIL_ALLOW: a domain or an address? */
export function isAllowEntry (text: string): boolean {
  return text.includes('@') ? domainOf(text) !== null : domain.test(text)
}
