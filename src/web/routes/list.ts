import type { FastifyInstance } from 'fastify'
import { html } from 'ghtml'
import type { ApprovalService } from '../../handoff/approvals.ts'
import type { Caller } from '../../model.ts'
import { cutMembers } from '../../handoff/json.ts'
import { waitFor } from '../../http/waiting.ts'
import { show } from '../guard.ts'
import { beginningOf, visible } from '../text.ts'
import { notice } from '../views/layout.ts'
import { fingerprint, listFragment, listPage } from '../views/list.ts'

const schema = { hide: true }
/** Handoffs per page. */
const listed = 50
/** How long a poll for changes stays open, in milliseconds: less than proxies commonly allow. */
const staysOpen = 25_000

interface ListQuery { Querystring: { cursor?: unknown, decided?: unknown, seen?: unknown } }

export function listRoutes (app: FastifyInstance, base: string, approvals: ApprovalService): void {
  app.get<ListQuery>('/', { schema }, async (request, reply) => {
    const { cursor, decided } = request.query
    const from = typeof cursor === 'string' ? cursor : undefined
    const flash = typeof decided === 'string' ? await flashOf(approvals, request.caller, decided) : ''
    const part = await approvals.list(request.caller.tenant, from, listed)
    return show(reply, 200, listPage({ base, caller: request.caller, part, flash, isFirst: from === undefined }))
  })

  app.get<ListQuery>('/list', { schema }, async (request, reply) => {
    const { seen } = request.query
    const part = await approvals.watch(request.caller, listed, waitFor(staysOpen, request), part => fingerprint(part) !== seen)
    return show(reply, 200, listFragment(base, part, fingerprint(part) !== seen))
  })
}

/** Confirms what this person has just decided. It reads the handoff again: the URL could claim anything. */
async function flashOf (approvals: ApprovalService, caller: Caller, id: string): Promise<string> {
  const one = await approvals.inspect(caller, id).catch(() => undefined)
  if (one === undefined || one.decision?.by !== caller.agent) return ''
  const verdict = one.record.approval === 'rejected' ? 'rejected' : 'approved'
  const members = one.payload === null ? undefined : cutMembers(Buffer.concat([Buffer.from('{'), one.payload, Buffer.from('}')]))
  const task = members?.values.task as string | undefined
  return notice('good', html`<p>You ${verdict} !${task === undefined ? 'it' : html`<q dir="auto">!${visible(beginningOf(task, 80))}${task.length > 80 ? '…' : ''}</q>`}</p>`)
}
