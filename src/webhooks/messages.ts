import type { MessageFormat } from '../core/model.ts'

/**
 * Messages for people: what happened, of which inbox and agent, until when, and a link. They decide nothing. Names of
 * inboxes and agents have a few harmless characters only. A task or a question may be any text, so each format shows it
 * in a place where the text means nothing but itself.
 */

/** A summary of an event for a person, before it has a format. */
export interface Summary {
  /** ASCII, one line. */
  title: string
  /** ASCII, one line each. */
  facts: ReadonlyArray<readonly [name: string, value: string]>
  /** The beginning of a task or a question. */
  quote: { name: 'Task' | 'Question', text: string, isCut: boolean } | null
  link: string
}

/** A message as it is sent: the header fields, and the body. */
interface ChatMessage { headers: Record<string, string>, body: string }

interface EventData {
  handoff_id?: string
  to?: string
  passed_by?: string
  caught_by?: string
  attempt?: number
  reissued_as?: string
  expired_because?: string
  approval_url?: string
  answer_url?: string
  answered_by?: string
  of?: string
  state?: string
  expires_at?: string
}

const becauseOf: Record<string, string> = {
  not_caught: 'nobody caught it in time',
  not_decided: 'nobody decided on it in time',
  not_done: 'it was not done in time',
  stalled: 'its catcher sent no heartbeat'
}

const titles: Record<string, string> = {
  'webhook.test': 'A test of this webhook: nothing is to be done',
  'handoff.passed': 'A handoff was passed',
  'handoff.approval_requested': 'A person must approve a handoff',
  'handoff.approved': 'A handoff was approved',
  'handoff.rejected': 'A handoff was rejected',
  'handoff.caught': 'A handoff was caught',
  'handoff.asked': 'An agent asks a question',
  'handoff.answered': 'A question was answered',
  'handoff.ask_ended': 'A question ended without an answer',
  'handoff.done': 'A handoff is done',
  'handoff.failed': 'A handoff failed',
  'handoff.declined': 'A handoff was declined',
  'handoff.cancelled': 'A handoff was cancelled',
  'handoff.cancel_requested': 'The catcher of a handoff was asked to stop',
  'handoff.expired': 'A handoff expired',
  'handoff.reissued': 'A handoff was reissued',
}

/** The events that the setting `updates` adds: decisions and answers. */
export const updateTypes: ReadonlySet<string> =
  new Set(['handoff.approved', 'handoff.rejected', 'handoff.answered'])

/** @param baseUrl the beginning of links @param timezone of the times */
export function summaryOf (
  type: string, data: object, quote: Summary['quote'], baseUrl: string, timezone = 'UTC'
): Summary {
  const event = data as EventData
  const { handoff_id: id, expires_at: end } = event
  const facts: Array<[name: string, value: string | undefined]> = [
    ['Inbox', event.to],
    ['Passed by', event.passed_by],
    [type === 'handoff.asked' ? 'Asked by' : 'Caught by', event.caught_by],
    ['For', event.of === undefined ? undefined : event.of === 'passer' ? 'the agent that passed it' : 'a person'],
    ['Answered by', event.answered_by],
    ['Attempt', event.attempt?.toString()],
    ['Because', event.expired_because === undefined ? undefined : becauseOf[event.expired_because]],
    ['Ended as', event.state],
    ['Tried again', event.reissued_as === undefined ? undefined : 'yes'],
    ['Until', end === undefined ? undefined : localTime(timezone, end)],
    ['Handoff', id],
  ]
  return {
    title: titles[type] ?? `Something happened: ${type}`,
    facts: facts.filter((fact): fact is [string, string] => fact[1] !== undefined),
    quote,
    link: linkTo(event.approval_url ?? event.answer_url ?? consolePage(id, baseUrl)),
  }
}

/** The text of a message that follows a decision or an answer. @param by who; null if that isn’t known any more */
export function updateOf (type: string, data: object, by: string | null, baseUrl: string): Summary {
  const { handoff_id: id, to } = data as EventData
  const facts: Array<[name: string, value: string | null | undefined]> = [['By', by], ['Inbox', to], ['Handoff', id]]
  return {
    title: titles[type]!,
    facts: facts.filter((fact): fact is [string, string] => fact[1] != null),
    quote: null,
    link: linkTo(consolePage(id, baseUrl)),
  }
}

/** How many events of a type, null for several, there were of an inbox. */
export interface SummaryGroup { type: string | null, inbox: string | null, count: number }

const forDecisions = new Set(['handoff.approval_requested', 'handoff.asked'])

/** What a message says of all that had no message of its own. */
export function summaryOfMany (groups: readonly SummaryGroup[], baseUrl: string): Summary {
  const count = groups.reduce((sum, group) => sum + group.count, 0)
  const isForDecisions = groups.every(({ type }) => type !== null && forDecisions.has(type))
  return {
    title: `${count} more within a minute`,
    facts: groups.map(({ type, inbox, count }) => [
      type === null ? 'Others' : titles[type] ?? type, inbox === null ? String(count) : `${count} in the inbox ${inbox}`
    ]),
    quote: null,
    link: linkTo(`${baseUrl}/${isForDecisions ? 'approvals' : 'console'}`),
  }
}

/** A time as a person reads it. @param timezone its IANA name */
function localTime (timezone: string, time: string): string {
  // This locale's form is the one that sorts.
  const text = new Date(time).toLocaleString('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'short' })
  return `${text} ${timezone}`
}

function consolePage (id: string | undefined, baseUrl: string): string {
  return id === undefined ? `${baseUrl}/` : `${baseUrl}/console/handoffs/${id}`
}

/** As a URL has them, so that a host of other characters is ASCII too. */
function linkTo (url: string): string {
  return new URL(url).href
}

/**
 * An agent's text as a harmless line. Line ends, control characters, and characters that can't be seen or that turn the
 * direction of text become spaces; marks are not piled up.
 */
export function oneLine (text: string): string {
  return text.replace(/[\p{C}\p{Z}\u115f\u1160\u3164\uffa0]+/gu, ' ').replace(/(\p{M}{3})\p{M}+/gu, '$1').trim()
}

function quoted ({ name, text, isCut }: NonNullable<Summary['quote']>): string {
  return `${name}: ${oneLine(text)}${isCut ? '…' : ''}`
}

function factLines ({ facts }: Summary): string[] {
  return facts.map(([name, value]) => `${name}: ${value}`)
}

const json = { 'content-type': 'application/json' }

/** Slack's incoming webhooks. A plain_text object has no markup; texts that may have some (mrkdwn) are escaped. */
export function slackMessage (summary: Summary): ChatMessage {
  const { title, quote, link } = summary
  const plain = (text: string) => ({ type: 'section', text: { type: 'plain_text', text, emoji: false } })
  const escaped = escapeSlack(link)
  return {
    headers: json,
    body: JSON.stringify({
      // For notifications, and programs that don't know blocks.
      text: `${escapeSlack(title)}: <${escaped}>`,
      mrkdwn: false,
      blocks: [
        plain([title, ...factLines(summary)].join('\n')),
        ...quote === null ? [] : [plain(quoted(quote))],
        { type: 'section', text: { type: 'mrkdwn', text: `<${escaped}|Open it>`, verbatim: true } },
      ],
      unfurl_links: false,
      unfurl_media: false,
    }),
  }
}

function escapeSlack (text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('|', '%7C')
}

/** Teams' workflows ("When a Teams webhook request is received"): an Adaptive Card. A TextRun has no markup. */
export function teamsMessage (summary: Summary): ChatMessage {
  const { title, facts, quote, link } = summary
  // In front of texts that a card would replace: a date, or a template's value.
  const run = (text: string, more = {}) => ({ type: 'TextRun', text: text.replace(/([{$])(?=\{)/g, '$1 '), ...more })
  const lines = [[run(title, { weight: 'Bolder', size: 'Medium' })],
    ...facts.map(([name, value]) => [run(`${name}: `, { isSubtle: true }), run(value)]),
    ...quote === null ? [] : [[run(quoted(quote))]]]
  return {
    headers: json,
    body: JSON.stringify({
      type: 'message',
      attachments: [{
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: lines.map((inlines, at) => ({ type: 'RichTextBlock', ...at > 0 && { spacing: 'Small' }, inlines })),
          actions: [{ type: 'Action.OpenUrl', title: 'Open it', url: link }],
        },
      }],
    }),
  }
}

/** Discord's webhooks. Text between backticks has no markup, and mentions are off, whatever the text says. */
export function discordMessage (summary: Summary): ChatMessage {
  const { title, facts, quote, link } = summary
  const code = (text: string) => `\`${text.replaceAll('`', 'ˋ')}\``
  const lines = [
    `**${title}**`,
    ...facts.map(([name, value]) => `${name}: ${code(value)}`),
    ...quote === null ? [] : [code(quoted(quote))],
    `<${link.replaceAll('>', '%3E')}>`,
  ]
  return {
    headers: json,
    // 4: no previews of links.
    body: JSON.stringify({ content: lines.join('\n'), allowed_mentions: { parse: [] }, flags: 4 }),
  }
}

/** ntfy: the message is the body, which is plain text unless a header field says otherwise. The rest is ASCII. */
export function ntfyMessage (summary: Summary): ChatMessage {
  const { title, quote, link } = summary
  return {
    headers: { 'content-type': 'text/plain; charset=utf-8', title, click: link, markdown: 'no' },
    body: [...factLines(summary), ...quote === null ? [] : [quoted(quote)]].join('\n') || title,
  }
}

/** A mail. The subject has names alone: agents' texts are in the body. */
export function mailText (summary: Summary): { subject: string, text: string } {
  const { title, facts, quote, link } = summary
  const [name, value] = facts.find(([name]) => name === 'Inbox' || name === 'Passed by') ?? []
  return {
    subject: value === undefined ? title : `${title} (${name!.toLowerCase()} ${value})`,
    text: [title, '', ...factLines(summary), ...quote === null ? [] : ['', quoted(quote)], '', link, ''].join('\n'),
  }
}

export const chatMessages: Record<MessageFormat, (summary: Summary) => ChatMessage> = {
  slack: slackMessage, teams: teamsMessage, discord: discordMessage, ntfy: ntfyMessage
}
