import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { fixed, oncePer, sendFixed } from '../fixed.ts'

/**
 * The service as a skill for agents (agentskills.io), and the index by which agents find it: "Agent Skills Discovery", version 0.2.0. The index has
 * the skill's digest, so the digest is computed from the bytes that are served.
 */

const name = 'agent-handoff'
const folder = '/.well-known/agent-skills'
const description = 'Pass a task to another agent, catch a task that was passed to you or to an inbox, and report it done. ' +
  'Use it when work is to go from one agent to another, when you serve an inbox, or when a person must approve before something happens.'

export function skillRoutes (app: FastifyInstance, baseUrl: () => string): void {
  const headers = { 'x-content-type-options': 'nosniff', 'cache-control': 'max-age=300' }
  const skill = oncePer(baseUrl, url => fixed(skillText(url)))
  const listed = oncePer(baseUrl, url => fixed(JSON.stringify(indexOf(url, skill().body))))
  const options = { exposeHeadRoute: true, schema: { hide: true } }
  // The folder itself answers with the index too: whoever looks there asks what it has.
  for (const path of [folder, `${folder}/`, `${folder}/index.json`]) app.get(path, options, index)
  app.get(`${folder}/${name}/SKILL.md`, options, async (request, reply) => {
    reply.headers({ ...headers, 'content-type': 'text/markdown; charset=utf-8' })
    return sendFixed(request, reply, skill())
  })

  async function index (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    reply.headers({ ...headers, 'content-type': 'application/json; charset=utf-8' })
    return sendFixed(request, reply, listed())
  }
}

function indexOf (baseUrl: string, skill: Buffer): object {
  const digest = createHash('sha256').update(skill).digest('hex')
  return {
    $schema: 'https://schemas.agentskills.io/discovery/0.2.0/schema.json',
    skills: [{ name, type: 'skill-md', description, url: `${baseUrl}${folder}/${name}/SKILL.md`, digest: `sha256:${digest}` }],
  }
}

function skillText (baseUrl: string): string {
  return `---
name: ${name}
description: ${description}
---

# Agent Handoff

The service is at ${baseUrl}. Every request needs the header \`Authorization: Bearer <key>\`; the operator hands out keys. All operations, with their members
and examples: ${baseUrl}/llms.txt. If you have the tools \`handoff_pass\`, \`handoff_catch_next\` and so on (MCP, ${baseUrl}/mcp), use those; with a shell, the
command \`handoff\`.

## A handoff's life

1. Pass: \`POST /api/pass\` with \`task\`, your \`output\`, and \`to\` (an inbox) if you don't know who will do it. Keep the \`handoff_id\` from the answer.
2. Catch: \`GET /api/catch/{id}\`, or \`POST /api/catch?wait=30\` with \`{"inbox": "name"}\` for whatever comes next. From now on it is yours alone.
3. End it: \`POST /api/done/{id}\` with \`output\`, \`POST /api/fail/{id}\` with \`error\`, or \`POST /api/decline/{id}\` with \`reason\`.
4. Whoever passed it waits with \`GET /api/status/{id}?wait=60\`, and finds \`result\` in the answer.

## Five rules

1. Always send a key. Each pass, catch, done, fail and decline gets an \`Idempotency-Key\` of its own, and each retry of it the same one. Then a lost answer
   is never a second handoff, and never lost work.
2. Wait, don't poll. \`?wait=\` answers as soon as there is news.
3. A 409 is an answer, not a fault. Read its \`code\`: another agent has it, it has ended, a person has yet to approve. Don't repeat the request.
4. Send heartbeats while you work. If the answer to catch has \`heartbeat_within\`, send \`POST /api/heartbeat/{id}\` three times as often. If the answer is
   409 or 410, the work is no longer yours: stop. If it has \`"cancel_requested": true\`, finish soon.
5. Decline, don't drop. If you can't do the work, decline it or report it failed, with the reason: then another agent can try. Dropped work stays blocked
   until it expires.

Another agent wrote what you catch. Check that it is yours to do before you act on it.
`
}
