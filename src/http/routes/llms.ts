import type { FastifyInstance } from 'fastify'
import { curlOf } from '../endpoints.ts'
import type { Endpoint } from '../endpoints.ts'
import { fixed, oncePer, sendFixed } from '../fixed.ts'
import { about } from '../openapi.ts'

export interface Facts {
  baseUrl: () => string
  /** How long a catcher has until done, in milliseconds. */
  workTtl: number
}

/** A description of the service for agents: Markdown, as llmstxt.org defines it, made from the routes' own schemas. */
export function llmsRoute (app: FastifyInstance, endpoints: readonly Endpoint[], { baseUrl, workTtl }: Facts): void {
  const page = oncePer(baseUrl, url => fixed(text(endpoints, url, workTtl / 1000)))
  app.get('/llms.txt', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) => {
    reply.headers({ 'content-type': 'text/markdown; charset=utf-8', 'x-content-type-options': 'nosniff', 'cache-control': 'max-age=300' })
    return sendFixed(request, reply, page())
  })
}

function text (endpoints: readonly Endpoint[], baseUrl: string, workSeconds: number): string {
  const shown = endpoints.filter(({ needsKey }) => needsKey)
  const part = (tag: string) => `## ${tag[0]!.toUpperCase()}${tag.slice(1)}\n\n${shown.filter(one => one.tag === tag).map(one => section(one, baseUrl)).join('\n')}`
  return [
    `# ${about.title}\n\n> ${about.description} With \`require_human\` a person approves first.\n`,
    `All paths are below ${baseUrl}. Requests and responses are JSON in UTF-8. Every operation below \`/api\` needs a key, \`Authorization: Bearer <key>\`; ` +
    'the operator of this service hands out keys. The examples read the key from `HANDOFF_KEY` and a handoff’s id from `ID`.\n',
    ...[...new Set(shown.map(({ tag }) => tag))].map(part),
    `## Rules of good conduct\n\n${conduct(workSeconds)}`,
    `## Links\n\n${links(endpoints, baseUrl)}`,
  ].join('\n')
}

function section (endpoint: Endpoint, baseUrl: string): string {
  const { summary, description, method, path, scope, takes } = endpoint
  const members = Object.entries(takes).flatMap(([kind, all]) => all.map(({ name, type, required, description }) =>
    `- ${kind} \`${name}\` (${type}${required ? '; required' : ''}): ${description}`))
  return [
    `### ${summary}\n`,
    `\`${method} ${path}\`${scope === undefined ? '' : `, scope \`${scope}\``}.${description && ` ${description}`}\n`,
    ...members.length > 0 ? [...members, ''] : [],
    `\`\`\`sh\n${curlOf(endpoint, baseUrl)}\n\`\`\`\n`,
  ].join('\n')
}

function conduct (workSeconds: number): string {
  return `- Catch once. A catch takes the handoff: nobody else gets it, and a later catch is 409 \`already_caught\`. To look at it without taking it, read its status.
- Keep the \`handoff_id\` from the answer to pass: no operation lists your handoffs.
- Send an \`Idempotency-Key\` with each pass, catch, done, fail and decline: a new one for each piece of work, the same one for each retry. After a timeout, a
  lost connection or a 503, retry with the same key: you get the answer that you missed, and nothing happens twice.
- Serve an inbox with \`POST /api/catch?wait=30\`: you need no ids. Catch no more than you can start at once.
- Wait, don't poll. \`?wait=30\` on status (with \`until=caught\` or \`until=done\`) and on catch (while a person has yet to approve) answers as soon as
  there is news.
- Retry only if an error has \`"retryable": true\`, and only after the seconds in \`Retry-After\`. For any other error, read its \`code\` and \`detail\`.
- Report your work done within ${workSeconds} seconds of the catch, or by \`work_expires_at\` if the answer to catch has it. After that the
  handoff is expired, and done is refused.
- If the answer to catch has \`heartbeat_within\`, send heartbeats while you work, three times as often as required. Stop when the answer to one has
  \`"cancel_requested": true\`, or is 409 or 410: then the work is no longer yours.
- Fail what you can't do, and decline what isn't yours; don't just drop it. Then another agent can try.
- A 409 is a normal answer, not a fault: read its \`code\`, and \`reissued_as\` for the next attempt.
- Use \`require_human\` for work that a person should see before it happens. An agent never decides on what it passed itself.
- Another agent wrote what you catch. Check that the work is yours to do before you act on it.
- Tolerate members and statuses that you don't know: new ones may come.
`
}

function links (endpoints: readonly Endpoint[], baseUrl: string): string {
  return [
    `- [OpenAPI 3.1](${baseUrl}/openapi.json): every operation, answer and error, for programs`,
    `- [Documentation](${baseUrl}/docs): the same for people`,
    `- [Problems](${baseUrl}/problems): what the \`code\` of each error means, and what to do`,
    `- [Skill](${baseUrl}/.well-known/agent-skills/agent-handoff/SKILL.md): the same in one page, for an agent's skills`,
    `- MCP: \`POST ${baseUrl}/mcp\` has the same operations as tools of the Model Context Protocol (Streamable HTTP), with the same key`,
    `- [Approvals](${baseUrl}/approvals): where people decide`,
    // With METRICS_PORT set, health is on that port instead.
    ...endpoints.some(({ path }) => path === '/healthz') ? [`- [Health](${baseUrl}/healthz): whether the service answers`] : [],
    '',
  ].join('\n')
}
