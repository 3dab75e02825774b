/**
 * Takes BASE_URL's path off a request's address where it is there. Some proxies forward it and some take it off themselves, and who
 * asks without one needn't know of it: all behind this sees the service's own paths alone. What the service writes has the path always.
 */
export function withoutBase (base: string) {
  // An address may have its host before it (RFC 9112, 3.2.2). Of the rest only what a URL keeps as it is can be in it (config.ts).
  const found = new RegExp(`^(?:https?://[^/?#]*)?${base.replaceAll('.', '\\.')}(?:/|(?=[?#]|$))`)
  return ({ url = '' }: { url?: string | undefined }): string => url.replace(found, '/')
}
