import { callbackSecretAnswer, rotateBody, rotatedCallbackSecret } from '../core/schemas/webhooks.ts'
import type { RotateBody } from '../core/schemas/webhooks.ts'
import { noQuery } from '../core/schemas/handoffs.ts'
import { defaultGrace } from '../webhooks/service.ts'
import { operation, unmoved } from './operation.ts'
import type { Services } from './operation.ts'

/** What signs the callbacks of what an agent passes. */

const all = { scope: 'pass', tag: 'webhooks', query: noQuery, refusals: ['events_off'] } as const

export function callbackSecret ({ callbacks }: Services) {
  return operation({
    ...all,
    name: 'callbackSecret',
    method: 'GET',
    path: '/api/callbacks/secret',
    summary: 'Read the secret that signs your callbacks',
    answers: { 200: callbackSecretAnswer },
    run: async ({ caller }) => unmoved(await callbacks.secret(caller.tenant, caller.agent)),
  })
}

export function rotateCallbackSecret ({ callbacks }: Services) {
  return operation<RotateBody>({
    ...all,
    name: 'rotateCallbackSecret',
    method: 'POST',
    path: '/api/callbacks/rotate',
    summary: 'Give your callbacks another secret',
    description: 'For the time of grace both secrets sign. The body may be left out.',
    body: rotateBody,
    answers: { 200: rotatedCallbackSecret },
    run: async ({ caller, body }) =>
      unmoved(await callbacks.rotate(caller.tenant, caller.agent, body.grace ?? defaultGrace)),
  })
}
