import { generateText, stepCountIs, tool } from 'ai'
import type { LanguageModel } from 'ai'
import { z } from 'zod'
// In a project of your own: from 'agent-handoff-client'.
import type { HandoffClient } from '../../../src/clients/typescript/index.ts'

/** Two agents on the AI SDK: a writer hands its draft over, a person approves, and a reviewer that serves an inbox reviews it. */

/** Lets a model pass work to other agents, and read what became of it. */
export function handoffTools (client: HandoffClient) {
  return {
    hand_over: tool({
      description: 'Passes work to another agent by its inbox. A person approves it first. Gives the handoff’s id.',
      inputSchema: z.object({ to: z.string(), task: z.string(), draft: z.string() }),
      // The tool call's id is the key: a step that is run again passes nothing twice.
      execute: async ({ to, task, draft }, { toolCallId, abortSignal }) => {
        const options = { idempotencyKey: toolCallId, ...abortSignal && { signal: abortSignal } }
        const { handoff_id: id } = await client.pass({ to, task, output: { draft }, require_human: true, max_attempts: 2 }, options)
        return { id }
      },
    }),
    outcome: tool({
      description: 'Waits until a handoff has ended, and gives its status and result.',
      inputSchema: z.object({ id: z.string() }),
      execute: async ({ id }) => {
        const { status, result = null } = await client.waitFor(id, 'done')
        return { status, result }
      },
    }),
  }
}

export async function write (client: HandoffClient, model: LanguageModel, prompt: string): Promise<string> {
  const { text } = await generateText({ model, prompt, tools: handoffTools(client), stopWhen: stepCountIs(5) })
  return text
}

/** Serves the inbox until the signal: what the function returns is the handoff's result, and what it throws its failure. */
export async function review (client: HandoffClient, model: LanguageModel, signal: AbortSignal): Promise<void> {
  await client.work('reviewer', async ({ task, output }, { signal: lost }) => {
    const { text } = await generateText({ model, abortSignal: lost, prompt: `${task}\n\n${JSON.stringify(output)}` })
    return { review: text }
  }, { signal })
}
