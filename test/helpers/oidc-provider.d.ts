/** The part of oidc-provider that tests use; the package has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Grant {
    addOIDCScope (scope: string): void
    addResourceScope (resource: string, scope: string): void
    rejectResourceScope (resource: string, scope: string): void
    save (): Promise<string>
  }
  interface Interaction { prompt: { name: string }, params: Record<string, string>, session?: { accountId: string } }

  export default class Provider {
    readonly Grant: new (of: { accountId: string, clientId: string }) => Grant
    constructor (issuer: string, configuration: object)
    callback (): (request: IncomingMessage, response: ServerResponse) => void
    interactionDetails (request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished (request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
  }
}
