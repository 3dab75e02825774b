import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'

/** What a receiver got. */
export interface Got { headers: IncomingHttpHeaders, body: string, path: string, at: number }

export interface Receiver {
  url: string
  got: Got[]
  /** How it answers from now on. */
  answer: (response: ServerResponse, got: Got) => void
}

/** A server that receives webhooks, on this machine. */
export async function receiver (t: Test, answer: Receiver['answer'] = response => response.writeHead(204).end(), make: (listener: RequestListener) => Server = createServer): Promise<Receiver> {
  const made: Receiver = { url: '', got: [], answer }
  const server = make((request: IncomingMessage, response: ServerResponse) => {
    text(request).then(body => {
      const got = { headers: request.headers, body, path: request.url!, at: Date.now() }
      made.got.push(got)
      made.answer(response, got)
    }, () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  made.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  return made
}
