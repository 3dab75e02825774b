import {
  approveBody, decisionAnswer, inspectAnswer, listAnswer, listQuery, rejectBody
} from '../core/schemas/approvals.ts'
import type { ListQuery } from '../core/schemas/approvals.ts'
import { decisionsAnswer, decisionsQuery } from '../core/schemas/decisions.ts'
import type { DecisionsQuery } from '../core/schemas/decisions.ts'
import { handoffParams, noQuery } from '../core/schemas/handoffs.ts'
import { isAddressed } from '../core/model.ts'
import { inspectionText, listText } from '../handoffs/people/approvals.ts'
import { decisionsText } from '../handoffs/people/decisions.ts'
import { labelsOf } from './arguments.ts'
import { operation, refusedBy, stays, unmoved } from './operation.ts'
import type { OperationCall, Operation, OperationOutcome, Services } from './operation.ts'

/** People's approvals and decisions, as an API; web/ has the pages. */

export function listApprovals ({ approvals }: Services) {
  return operation<unknown, ListQuery>({
    name: 'listApprovals',
    scope: 'approve',
    method: 'GET',
    path: '/api/approvals',
    tag: 'approvals',
    summary: 'List the handoffs that wait for approval',
    description: 'Oldest first, only this tenant’s. Pages stay stable while handoffs come and go. Go on until ' +
      'next_cursor is null: before that, a page may have fewer items than `limit`, or none. A task is truncated to ' +
      '1,000 characters (Unicode code points).',
    query: listQuery,
    answers: { 200: listAnswer },
    async run ({ caller, query, requester }) {
      const { cursor, limit = 20, inbox } = query
      const wanted = { inbox, labels: labelsOf(query) }
      const { items, ...part } = await approvals.list(caller.tenant, cursor, limit, wanted, requester)
      const answer = listText({ ...part, items: items.filter(({ record }) => isAddressed(caller, record)) })
      return unmoved(answer)
    },
  })
}

export function inspectApproval ({ approvals, handoffFiles }: Services) {
  return operation({
    name: 'inspectApproval',
    scope: 'approve',
    method: 'GET',
    path: '/api/approvals/:id',
    tag: 'approvals',
    summary: 'Read a handoff before the decision',
    description: 'Shows everything that was passed. Changes nothing.',
    params: handoffParams,
    query: noQuery,
    answers: { 200: inspectAnswer },
    refusals: ['not_addressee', 'no_approval_required'],
    async run ({ caller, id, requester }) {
      const found = await approvals.inspect(caller, id, requester)
      return unmoved(inspectionText(found, await handoffFiles.urls(caller.tenant, 'files', found.payload, requester)))
    },
  })
}

const decisionsPath = '/api/decisions'

export function listDecisions ({ decisions }: Services) {
  return operation<unknown, DecisionsQuery>({
    name: 'listDecisions',
    scope: ['approve', 'operate'],
    method: 'GET',
    path: decisionsPath,
    tag: 'approvals',
    summary: 'List what people decided',
    description: 'Which handoffs people of this tenant approved and rejected, and which questions they answered, the ' +
      'latest first. A decision is kept for DECISIONS_RETENTION (90 days by default), though its handoff goes. Go on ' +
      'until next_cursor is null: before that, a page may have fewer items than `limit`, or none.',
    query: decisionsQuery,
    answers: { 200: decisionsAnswer },
    async run ({ caller, query, requester }) {
      const page = await decisions.page(caller, query, requester)
      if (query.format !== 'csv') return unmoved(decisionsText(page))
      const next = page.next === null ? {} : { next: nextPage(query, page.next) }
      const file = { name: 'decisions.csv', type: 'text/csv; charset=utf-8; header=present', ...next }
      return { ...unmoved(decisions.file(page)), file }
    },
  })
}

function nextPage (query: DecisionsQuery, cursor: string): string {
  const given = Object.entries({ ...query, cursor }).map(([name, value]): [string, string] => [name, String(value)])
  return `${decisionsPath}?${new URLSearchParams(given)}`
}

const decision = {
  scope: 'approve',
  method: 'POST',
  tag: 'approvals',
  params: handoffParams,
  query: noQuery,
  answers: { 200: decisionAnswer },
  refusals: refusedBy('decide', 'rejected'),
} as const satisfies Partial<Operation>

export function approve (services: Services) {
  return operation<DecisionBody>({
    ...decision,
    name: 'approve',
    path: '/api/approve/:id',
    summary: 'Approve a handoff, so that it can be caught',
    description: 'The decision is final. The agent that passed a handoff may not decide on it. The body is ' +
      'optional.',
    body: approveBody,
    run: call => decide(services, call, 'approved'),
  })
}

export function reject (services: Services) {
  return operation<DecisionBody>({
    ...decision,
    name: 'reject',
    path: '/api/reject/:id',
    summary: 'Reject a handoff, so that nobody can catch it',
    description: 'The decision is final and needs a note. The agent that passed a handoff may not decide on it.',
    body: rejectBody,
    run: call => decide(services, call, 'rejected'),
  })
}

interface DecisionBody { digest?: string | null }

const noNote = Buffer.from('null')

async function decide (
  { approvals, decisions }: Services, { caller, id, body, members, createdAt, requester }: OperationCall<DecisionBody>,
  decided: 'approved' | 'rejected'
): Promise<OperationOutcome> {
  // The note's JSON text as it came. It is stored and shown, and never parsed here.
  const note = members.raw('note') ?? noNote
  const seen = { createdAt, digest: digestIn(body) }
  const answer = await approvals.decide(caller, decided, id, note, seen, requester)
  decisions.made(caller)
  // An approved handoff is as pending as before.
  const moved = decided === 'rejected' ? { to: [decided], ids: [id] } : stays
  return { status: 200, answer, replayed: false, moved, decided }
}

/** The SHA-256 in base64, taken out of RFC 9530's form. */
function digestIn ({ digest }: DecisionBody): string | undefined {
  return digest == null ? undefined : digest.slice('sha-256=:'.length, -':'.length)
}
