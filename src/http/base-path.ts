/**
 * Removes BASE_URL's path from a request's URL if it is there. Some proxies forward the path and some remove it, and a local caller needn't know
 * it. So all later code sees only the service's own paths. URLs that the service writes always have the path.
 */
export function withoutBase (base: string) {
  // The target may be in absolute form, with scheme and host (RFC 9112, 3.2.2). The base path has only characters that a URL doesn't escape
  // (config.ts), so only dots need escaping here.
  const found = new RegExp(`^(?:https?://[^/?#]*)?${base.replaceAll('.', '\\.')}(?:/|(?=[?#]|$))`)
  return ({ url = '' }: { url?: string | undefined }): string => url.replace(found, '/')
}
