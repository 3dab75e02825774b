import { Agent, Runner, tool } from '@openai/agents'
import type { Model } from '@openai/agents'
import { z } from 'zod'
// In a project of your own: from 'agent-handoff-client'.
import type { HandoffClient } from '../../../src/clients/typescript/index.ts'

/** The same writer on the OpenAI Agents SDK: it hands its draft over by a tool. */
export async function write (client: HandoffClient, model: Model, prompt: string): Promise<string> {
  const agent = new Agent({
    name: 'writer',
    instructions: 'Write a draft, hand it over to the inbox "reviewer", wait for its outcome, and answer with the review.',
    model,
    tools: [
      tool({
        name: 'hand_over',
        description: 'Passes work to another agent by its inbox. A person approves it first. Gives the handoff’s id.',
        parameters: z.object({ to: z.string(), task: z.string(), draft: z.string() }),
        execute: async ({ to, task, draft }) => (await client.pass({ to, task, output: { draft }, require_human: true })).handoff_id,
      }),
      tool({
        name: 'outcome',
        description: 'Waits until a handoff has ended, and gives its status and result as JSON.',
        parameters: z.object({ id: z.string() }),
        execute: async ({ id }) => (await client.waitFor(id, 'done')).text,
      }),
    ],
  })
  const { finalOutput } = await new Runner({ tracingDisabled: true }).run(agent, prompt)
  return String(finalOutput)
}
