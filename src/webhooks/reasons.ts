import { attemptTimeout } from './sender.ts'

/** What an attempt's errors mean, as far as a receiver's owner or an operator can do something about them. */
const inWords: Readonly<Record<string, string>> = {
  timeout: `There was no answer within ${attemptTimeout / 1000} seconds.`,
  target_refused: 'The service doesn’t send there: it must be an https URL of a public address, or an address that ' +
    'its WEBHOOK_ALLOW names.',
  mail_off: 'The service sends no mail: its SMTP_URL, MAIL_FROM and MAIL_ALLOW aren’t set.',
  unknown_format: 'The replica that tried knows no such format: it is of an older version.',
  payload_locked: 'The replica that tried doesn’t have the key that the text was encrypted with.',
  ECONNREFUSED: 'Nothing listens at this address and port.',
  ECONNRESET: 'The receiver closed the connection without an answer.',
  EHOSTUNREACH: 'No way leads from the service to this address.',
  ENETUNREACH: 'No way leads from the service to this address.',
  CERT_HAS_EXPIRED: 'The receiver’s certificate has expired.',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'The receiver’s certificate is signed by itself, so no authority vouches for it.',
  SELF_SIGNED_CERT_IN_CHAIN: 'The receiver’s certificate is signed by an authority that the service doesn’t know.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'The receiver sends its certificate without those between it and an authority.',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'The receiver’s certificate is of an authority that the service doesn’t know.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The receiver’s certificate is for another name.',
  EAUTH: 'The mail server refused the user or the password in SMTP_URL.',
}
const mailRefused = 'The service sends no mail to this address: its MAIL_ALLOW must name it, or its domain.'

/** Why an attempt of a callback failed: the same, in words. */
export function whyCallbackFailed (status: number | null, error: string | null): string | null {
  return error === null && status === 410
    ? 'The receiver answered 410: it wants no more, so this isn’t sent again.'
    : whyFailed(status, error, false)
}

/** Why an attempt failed, in words; null where it didn't fail, or wasn't made. */
export function whyFailed (status: number | null, error: string | null, isMail: boolean): string | null {
  if (error !== null) {
    return isMail && error === 'target_refused' ? mailRefused : inWords[error] ?? `The attempt failed with ${error}.`
  }
  if (status === null || (status >= 200 && status < 300)) return null
  if (isMail) return `The mail server answered ${status}.`
  if (status === 410) return 'The receiver answered 410: it wants no more, so the webhook is disabled.'
  return status < 400
    ? `The receiver answered ${status}, which isn’t 2xx; redirects aren’t followed.`
    : `The receiver answered ${status}, which isn’t 2xx.`
}
