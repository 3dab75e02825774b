import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import { Problem, errorTable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { cutMembers } from '../core/json.ts'
import { wantedLabels } from '../core/labels.ts'
import type { Caller } from '../core/model.ts'
import { approveBody } from '../core/schemas/approvals.ts'
import { digestText } from '../handoffs/answers.ts'
import { inspectionText } from '../handoffs/approvals.ts'
import type { Inspection, ToRead } from '../handoffs/approvals.ts'
import type { WaitingService, WantedByPeople } from '../handoffs/waiting.ts'
import type { SeenByPerson, ApprovalVerdict } from '../store/approvals.ts'
import { faultsOf } from './console-routes.ts'
import { faultOfNote, form, noteOf, sentAgain } from './notes.ts'
import { perform } from './perform.ts'
import type { Performing, Wanted } from './perform.ts'
import { pageOf, readOne } from './questions.ts'
import type { Questions } from './questions.ts'
import { redirect, show } from './session.ts'
import { beginningOf, visible } from './text.ts'
import { handoffPage } from './views/handoff.ts'
import { notice } from './views/layout.ts'
import { fingerprint, listFragment, listPage } from './views/list.ts'
import type { ListFilters } from './views/list.ts'

const schema = { hide: true }
/** Handoffs per page. */
export const listed = 50
/** How long a poll for changes stays open, in milliseconds: less than proxies commonly allow. */
const staysOpen = 25_000

interface ListQuery { Querystring: Record<string, unknown> }

export function listRoutes (app: FastifyInstance, services: Questions, waiting: WaitingService): void {
  app.get<ListQuery>('/', { schema }, async (request, reply) => {
    const { caller, query: { cursor } } = request
    const from = typeof cursor === 'string' ? cursor : undefined
    const { filters, wanted } = filtersOf(request.query)
    const flash = await flashOf(services, request as FastifyRequest<ListQuery>)
    const part = await waiting.list(caller, from, listed, wanted, request)
    return show(reply, 200, listPage({ caller, part, flash, cursor: from, filters }))
  })

  app.get<ListQuery>('/list', { schema }, async (request, reply) => {
    const { caller, query: { seen } } = request
    const { filters, wanted } = filtersOf(request.query)
    const waits = { milliseconds: staysOpen, asker: request }
    const part = await waiting.watch(caller, listed, wanted, waits, part => fingerprint(part) !== seen)
    return show(reply, 200, listFragment(caller, part, filters, fingerprint(part) !== seen))
  })
}

/** What a query, or a form, narrows the list to. What is malformed narrows nothing, and the page says so. */
export function filtersOf (query: Record<string, unknown>): { filters: ListFilters, wanted: WantedByPeople } {
  const text = (name: string) => typeof query[name] === 'string' ? query[name].trim() : ''
  const [inbox, labels] = [text('inbox'), text('labels').replace(/\s*,\s*/g, ',')]
  const labelsWanted = labels === '' ? undefined : wantedLabels(labels)
  const wrong = faultsOf(inbox, labels).filter(sentence => sentence !== '')
  const only: WantedByPeople['only'] = query.only === 'questions' ? query.only : undefined
  if (wrong.length > 0) {
    const problem = `${wrong.join(' ')} So this shows all.`
    return { filters: { inbox, labels, only, problem }, wanted: { only } }
  }
  const wanted = { ...inbox !== '' && { inbox }, labels: labelsWanted ?? undefined, only }
  return { filters: { inbox, labels, only }, wanted }
}

/** Confirms what this person has just done. It reads the handoff again: the URL could claim anything. */
async function flashOf ({ approvals, asks }: Questions, request: FastifyRequest<ListQuery>): Promise<string> {
  const { caller, query: { decided, answered } } = request
  if (typeof decided === 'string') {
    return decisionFlash(caller, await approvals.inspect(caller, decided, request).catch(() => null))
  }
  if (typeof answered !== 'string') return ''
  const found = await asks.find(caller, answered, request).catch(() => null)
  const ask = found?.record.extra.ask
  return found === null || ask?.of !== 'person' || ask.answeredBy !== caller.agent
    ? ''
    : notice('good', html`<p>You answered !${beginning(JSON.parse(found.texts.question.toString()) as string)}</p>`)
}

function decisionFlash (caller: Caller, one: Inspection | null): string {
  if (one === null || one.decision?.by !== caller.agent) return ''
  const verdict = one.record.approval === 'rejected' ? 'rejected' : 'approved'
  const members = one.payload === null
    ? undefined
    : cutMembers(Buffer.concat([Buffer.from('{'), one.payload, Buffer.from('}')]))
  const task = members?.values.task as string | undefined
  return notice('good', html`<p>You ${verdict} !${task === undefined ? 'it' : beginning(task)}</p>`)
}

function beginning (text: string): string {
  return html`<q dir="auto">!${visible(beginningOf(text, 80))}${text.length > 80 ? '…' : ''}</q>`
}

interface OneHandoff { Params: { id: string } }

/** The page of one handoff, its approval_url and answer_url. Opening it never decides or answers anything. */
export function handoffRoutes (app: FastifyInstance, services: Questions): void {
  const { approvals } = services
  app.get<OneHandoff>('/:id', { schema }, async (sent, reply) => {
    const request = sent as FastifyRequest
    return show(reply, 200, pageOf(request, await readOne(services, request, sent.params.id)))
  })

  app.get<OneHandoff>('/:id/whole', { schema }, async (request, reply) => {
    const one = await approvals.inspect(request.caller, request.params.id, request as FastifyRequest)
    return reply
      .header('content-type', 'text/plain; charset=utf-8')
      .header('content-disposition', `attachment; filename="handoff-${one.id}.txt"`)
      .send(inspectionText(one))
  })
}

interface Decide { Params: { id: string }, Body: Record<string, unknown> | undefined }

type Deciding = Performing & Pick<Questions, 'approvals'>

export function decisionRoutes (app: FastifyInstance, services: Deciding): void {
  app.post<Decide>('/:id/approve', form, (request, reply) => decide(services, 'approved', request, reply))
  app.post<Decide>('/:id/reject', form, (request, reply) => decide(services, 'rejected', request, reply))
}

/**
 * After a decision comes the list, with the focus on the next handoff. Not that handoff's page: a second press of the
 * same key would then decide what wasn't read.
 */
async function decide (
  services: Deciding, verdict: ApprovalVerdict, request: FastifyRequest<Decide>, reply: FastifyReply
): Promise<FastifyReply> {
  const { approvals, refused } = services
  const { caller, params: { id } } = request
  const note = noteOf(request.body)
  const problem = request.isSentAgain ? `${sentAgain} Nothing was decided yet.` : faultOf(note, verdict)
  const seen = seenOf(request.body)
  // The handoff's page itself says why: a person has decided, it has expired, or the id is another handoff's.
  const refuse = (code: ErrorCode, one: ToRead) => {
    refused(code)
    return show(
      reply, errorTable[code].status,
      handoffPage(caller, one, code === 'content_changed' ? { note, isAnother: true } : undefined)
    )
  }
  if (problem !== undefined) {
    const one = await approvals.read(caller, id, request as FastifyRequest)
    // If the content has changed, refuse as well: this page puts the focus on the note, below content that is
    // unread.
    if (one.record.createdAt !== seen.createdAt || (seen.digest !== undefined && one.digest !== seen.digest)) {
      return refuse('content_changed', one)
    }
    return show(reply, request.isSentAgain ? 200 : 400, handoffPage(caller, one, { note, problem }))
  }
  try {
    await perform(services, request as FastifyRequest, operationFor[verdict], decisionOf(id, note, seen))
  } catch (error) {
    if (!(error instanceof Problem) || !standing.has(error.code)) throw error
    return refuse(error.code, await approvals.read(caller, id, request as FastifyRequest))
  }
  return redirect(reply, `/approvals?decided=${id}`)
}

const standing = new Set<string>(['already_decided', 'cancelled', 'expired', 'self_approval', 'content_changed'])

/** Which content the page showed: when it was passed, and its digest. Without a time it is unknown what was read. */
function seenOf (form: Record<string, unknown> | undefined): SeenByPerson {
  const { created_at: at, digest } = form ?? {}
  return { createdAt: typeof at === 'string' ? Date.parse(at) : NaN, ...typeof digest === 'string' && { digest } }
}

export const operationFor = { approved: 'approve', rejected: 'reject' } as const
const digestShape = new RegExp(approveBody.properties.digest.pattern as string)

/** What a decision asks of its operation. A digest that no page shows matches no handoff. */
export function decisionOf (id: string, note: string, { createdAt, digest }: SeenByPerson): Wanted {
  const text = digest ? digestText(digest) : null
  const isOurs = text === null || digestShape.test(text)
  return { id, body: { ...note !== '' && { note }, digest: isOurs ? text : null }, createdAt: isOurs ? createdAt : NaN }
}

/** Why a note is refused, in plain words. */
export function faultOf (note: string, verdict: ApprovalVerdict): string | undefined {
  if (note === '' && verdict === 'rejected') return 'To reject, say why in the note. Nothing was decided yet.'
  const fault = faultOfNote(note)
  return fault === undefined ? undefined : `${fault} Nothing was decided yet.`
}
