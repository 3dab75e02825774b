/** helmet's options for every page of the service. @param isSecure the pages are served over https */
export function securityHeaders (isSecure: boolean) {
  return {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'", 'data:'],
        connectSrc: ["'self'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
      },
    },
    frameguard: { action: 'deny' as const },
    strictTransportSecurity: isSecure,
    // Not no-referrer: with that, browsers send `Origin: null` to us too, and our own forms look like a stranger's.
    referrerPolicy: { policy: 'same-origin' as const },
  }
}
