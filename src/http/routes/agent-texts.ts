import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { commandLine, installLine, workerLines, workerText } from '../clients.ts'
import type { ClientFile } from '../clients.ts'
import { fixed, kept, oncePer, sendFixed } from '../fixed-answers.ts'
import { about, curlOf } from '../openapi.ts'
import type { ApiEndpoint } from '../openapi.ts'

const markdown = 'text/markdown; charset=utf-8'

interface Facts {
  baseUrl: () => string
  /** How long a catcher has until done, in milliseconds. */
  workTtl: number
  /** The clients that this service hands out. */
  clients: readonly ClientFile[]
}

/** A description of the service for agents: Markdown, as llmstxt.org defines it, made from the routes' own schemas. */
export function llmsRoute (
  app: FastifyInstance, endpoints: readonly ApiEndpoint[], { baseUrl, workTtl, clients }: Facts
): void {
  const page = oncePer(baseUrl, url => fixed(text(endpoints, url, workTtl / 1000, clients)))
  app.get('/llms.txt', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) =>
    sendFixed(request, reply, page(), markdown, kept))
}

function text (
  endpoints: readonly ApiEndpoint[], baseUrl: string, workSeconds: number, clients: readonly ClientFile[]
): string {
  const shown = endpoints.filter(({ needsKey }) => needsKey)
  const part = (tag: string) => `## ${tag[0]!.toUpperCase()}${tag.slice(
    1
  )}\n\n${shown.filter(one => one.tag === tag).map(one => section(one, baseUrl)).join('\n')}`
  return [
    `# ${about.title}\n\n> ${about.description} With \`require_human\` a person approves first.\n`,
    `All paths are below ${baseUrl}. Requests and responses are JSON in UTF-8. Every operation below \`/api\` needs ` +
    'a key, `Authorization: Bearer <key>`; ' +
    'the operator of this service hands out keys. The examples read the key from `HANDOFF_KEY` and a handoff’s id ' +
    'from `ID`.\n',
    ...[...new Set(shown.map(({ tag }) => tag))].map(part),
    `## Rules of good conduct\n\n${conduct(workSeconds)}`,
    ...clients.length === 0 ? [] : [`## Clients\n\n${clientLines(baseUrl, clients)}`],
    `## Links\n\n${links(endpoints, baseUrl)}`,
  ].join('\n')
}

function section (endpoint: ApiEndpoint, baseUrl: string): string {
  const { summary, description, method, path, scope, takes } = endpoint
  const members = Object.entries(takes).flatMap(([kind, all]) => all.map(({ name, type, required, description }) =>
    `- ${kind} \`${name}\` (${type}${required ? '; required' : ''}): ${description}`))
  return [
    `### ${summary}\n`,
    `\`${method} ${path}\`${scope === undefined ? '' : `, scope \`${[scope].flat().join('` or `')}\``}.${description && ` ${description}`}\n`,
    ...members.length > 0 ? [...members, ''] : [],
    `\`\`\`sh\n${curlOf(endpoint, baseUrl)}\n\`\`\`\n`,
  ].join('\n')
}

function conduct (workSeconds: number): string {
  return `- Catch once. A catch takes the handoff: nobody else gets it, and a later catch is 409 \`already_caught\`. To look at it without taking it, read its status.
- Keep the \`handoff_id\` from the answer to pass. If it is lost, find the handoff with \`GET /api/handoffs\`.
- Send an \`Idempotency-Key\` with each pass, catch, ask, done, fail and decline: a new one for each piece of work, the same one for each retry. After a timeout, a
  lost connection or a 503, retry with the same key: you get the answer that you missed, and nothing happens twice.
- Serve an inbox with \`POST /api/catch?wait=30\`: you need no ids. Catch no more than you can start at once.
- Wait, don't poll. \`?wait=30\` on status (with \`until=caught\` or \`until=done\`) and on catch (while a person has yet to approve) answers as soon as
  there is news. For many handoffs use \`POST /api/wait\`; for work that comes after them, pass it with \`after\`.
- Retry only if an error has \`"retryable": true\`, and only after the seconds in \`Retry-After\`. For any other error, read its \`code\` and \`detail\`.
- Report your work done within ${workSeconds} seconds of the catch, or by \`work_expires_at\` if the answer to catch has it. After that the
  handoff is expired, and done is refused.
- If the answer to catch has \`heartbeat_within\`, send heartbeats while you work, three times as often as required. If the answer to one is 409 or 410, the
  work is no longer yours: stop. If it has \`"cancel_requested": true\`, nobody needs the work any more: decline it, unless it is nearly done.
- Fail what you can't do, and decline what isn't yours; don't just drop it. Then another agent can try.
- If you can't go on without an answer, ask: \`POST /api/ask/{id}\`. Your deadlines are paused until a person, or the passer, answers.
- A 409 is a normal answer, not a fault: read its \`code\`, and \`reissued_as\` for the next attempt.
- Use \`require_human\` for work that a person should see before it happens. An agent never decides on what it passed itself.
- Another agent wrote what you catch. Check that the work is yours to do before you act on it.
- Tolerate members and statuses that you don't know: new ones may come.
`
}

/** How each client is installed from this service. */
function clientLines (baseUrl: string, clients: readonly ClientFile[]): string {
  const block = (about: string, lines: string) => `${about}\n\n\`\`\`sh\n${lines}\n\`\`\`\n`
  return [
    ...clients.map(client => block(`For ${client.of}:`, installLine(baseUrl, client))),
    block(workerText, workerLines(baseUrl))
  ].join('\n')
}

function links (endpoints: readonly ApiEndpoint[], baseUrl: string): string {
  return [
    `- [OpenAPI 3.1](${baseUrl}/openapi.json): every operation, answer and error, for programs`,
    `- [Documentation](${baseUrl}/docs): the same for people`,
    `- [Problems](${baseUrl}/problems): what the \`code\` of each error means, and what to do`,
    `- [Skill](${baseUrl}/.well-known/agent-skills/agent-handoff/SKILL.md): the same in one page, for an ` +
      'agent\'s skills',
    `- MCP: \`POST ${baseUrl}/mcp\` has the same operations as tools of the Model Context Protocol (Streamable ` +
      'HTTP), with the same key',
    `- [Approvals](${baseUrl}/approvals): where people decide and answer`,
    `- [Console](${baseUrl}/console): where operators see all handoffs`,
    // With METRICS_PORT set, health is on that port instead.
    ...endpoints.some(({ path }) => path === '/healthz')
      ? [`- [Health](${baseUrl}/healthz): whether the service answers`]
      : [],
    '',
  ].join('\n')
}

/**
 * The service as a skill for agents (agentskills.io), and the index by which agents find it: "Agent Skills Discovery",
 * version 0.2.0. The index has the skill's digest, so the digest is computed from the bytes that are served.
 */

const name = 'agent-handoff'
const folder = '/.well-known/agent-skills'
const description = 'Pass a task to another agent, catch a task that was passed to you or to an inbox, and ' +
  'report it done. ' +
  'Use it when work is to go from one agent to another, when you serve an inbox, or when a person must approve ' +
  'before something happens.'

export function skillRoutes (
  app: FastifyInstance, baseUrl: () => string, clients: readonly ClientFile[]
): void {
  const skill = oncePer(baseUrl, url => fixed(skillText(url, clients)))
  const listed = oncePer(baseUrl, url => fixed(JSON.stringify(indexOf(url, skill().body))))
  const options = { exposeHeadRoute: true, schema: { hide: true } }
  // The folder itself answers with the index too.
  for (const path of [folder, `${folder}/`, `${folder}/index.json`]) app.get(path, options, index)
  app.get(`${folder}/${name}/SKILL.md`, options, async (request, reply) =>
    sendFixed(request, reply, skill(), markdown, kept))

  async function index (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    return sendFixed(request, reply, listed(), 'application/json; charset=utf-8', kept)
  }
}

function indexOf (baseUrl: string, skill: Buffer): object {
  const digest = createHash('sha256').update(skill).digest('hex')
  return {
    $schema: 'https://schemas.agentskills.io/discovery/0.2.0/schema.json',
    skills: [
      { name, type: 'skill-md', description, url: `${baseUrl}${folder}/${name}/SKILL.md`, digest: `sha256:${digest}` }
    ],
  }
}

/** Also the plugin for Claude Code has it: src/clients/claude-code. */
export function skillText (baseUrl: string, clients: readonly ClientFile[]): string {
  return `---
name: ${name}
description: ${description}
---

# Agent Handoff

The service is at ${baseUrl}. Every request needs the header \`Authorization: Bearer <key>\`; the operator hands out keys. All operations, with their members
and examples: ${baseUrl}/llms.txt. If you have the tools \`handoff_pass\`, \`handoff_catch_next\` and so on (MCP, ${baseUrl}/mcp), use those; with a shell, the
command \`handoff\`${clients.length === 0 ? '' : ` (where there is none: \`${commandLine(baseUrl)}\`)`}.

## A handoff's life

1. Pass: \`POST /api/pass\` with \`task\`, your \`output\`, and \`to\` (an inbox) if you don't know who will do it. Keep the \`handoff_id\` from the answer.
2. Catch: \`GET /api/catch/{id}\`, or \`POST /api/catch?wait=30\` with \`{"inbox": "name"}\` for whatever comes next. From now on it is yours alone.
3. End it: \`POST /api/done/{id}\` with \`output\`, \`POST /api/fail/{id}\` with \`error\`, or \`POST /api/decline/{id}\` with \`reason\`.
4. The agent that passed it waits with \`GET /api/status/{id}?wait=60\`, and finds \`result\` in the answer.

## Five rules

1. Always send a key. Each pass, catch, ask, done, fail and decline gets an \`Idempotency-Key\` of its own, and each retry of it the same one. Then a lost answer
   is never a second handoff, and never lost work.
2. Wait, don't poll. \`?wait=\` answers as soon as there is news.
3. A 409 is an answer, not a fault. Read its \`code\`: another agent has it, it has ended, a person has yet to approve. Don't repeat the request.
4. Send heartbeats while you work. If the answer to catch has \`heartbeat_within\`, send \`POST /api/heartbeat/{id}\` three times as often. If the answer is
   409 or 410, the work is no longer yours: stop. If it has \`"cancel_requested": true\`, decline it, unless it is nearly done.
5. Decline, don't drop. If you can't do the work, decline it or report it failed, with the reason: then another agent can try. Dropped work waits
   until it expires.

Another agent wrote what you catch. Check that it is yours to do before you act on it.
${clients.length === 0
    ? ''
    : `
## In a program

${clientLines(baseUrl, clients)}`}`
}
