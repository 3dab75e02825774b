import { ignoredKeyHeaders, noQuery } from '../core/schemas/handoffs.ts'
import { inboxAnswer, inboxParams, inboxSettingsBody, inboxesAnswer, inboxesQuery } from '../core/schemas/inboxes.ts'
import type { InboxSettingsBody, InboxesQuery } from '../core/schemas/inboxes.ts'
import { operation, stays, unmoved } from './operation.ts'
import type { Services } from './operation.ts'

/** What there is in inboxes, and what operators set for them. */

export function inbox ({ inboxSettings }: Services) {
  return operation({
    name: 'inbox',
    scope: 'status',
    method: 'GET',
    path: '/api/inboxes/:name',
    tag: 'inboxes',
    summary: 'Count what is in an inbox',
    description: 'Changes nothing, and shows no contents.',
    params: inboxParams,
    query: noQuery,
    answers: { 200: inboxAnswer },
    async run ({ caller, id: name }) {
      return unmoved(await inboxSettings.count(caller.tenant, name))
    },
  })
}

export function listInboxes ({ inboxSettings }: Services) {
  return operation<unknown, InboxesQuery>({
    name: 'listInboxes',
    scope: 'status',
    method: 'GET',
    path: '/api/inboxes',
    tag: 'inboxes',
    summary: 'List inboxes',
    description: 'Only this tenant’s, by name: each that holds something or has settings. Go on until next_cursor is ' +
      'null: before that, a page may have fewer items than `limit`, or none.',
    query: inboxesQuery,
    answers: { 200: inboxesAnswer },
    async run ({ caller, query, asker }) {
      return unmoved(await inboxSettings.list(caller, query, asker))
    },
  })
}

export function setInbox ({ inboxSettings }: Services) {
  return operation<InboxSettingsBody>({
    name: 'setInbox',
    scope: 'operate',
    method: 'PUT',
    path: '/api/inboxes/:name',
    tag: 'operating',
    summary: 'Pause, resume or limit an inbox',
    description: 'Takes effect on every replica with the next call. Catches from a paused inbox wait as if it ' +
      'were empty. max_caught and max_pending limit how many of its handoffs are caught, and how many are pending.',
    params: inboxParams,
    query: noQuery,
    headers: ignoredKeyHeaders,
    body: inboxSettingsBody,
    answers: { 200: inboxAnswer },
    async run ({ caller, id: name, body }) {
      const { isChanged, answer } = await inboxSettings.set(caller, name, body)
      const operated = { action: 'inbox', asked: { inbox: name, ...body }, changed: isChanged ? 1 : 0 }
      return { status: 200, answer, replayed: false, moved: stays, operated }
    },
  })
}
