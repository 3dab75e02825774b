/** helmet's options for every page of the service. @param isSecure people come over https */
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
    // Not no-referrer: with that a browser says `Origin: null` to us as well, and a form of ours looks like anybody's.
    referrerPolicy: { policy: 'same-origin' as const },
  }
}
