import type { Test } from 'tap'
import { serve } from '../helpers/client.ts'

/** Anthropic's API for messages, as far as its agents need it, with a model that says what a test tells it. */

type Reply = { tool: string, input: object } | { text: string }

/** @param say what the model says to the messages so far, as JSON. @returns its address, and what it was asked, with tools */
export async function messagesApi (t: Test, say: (heard: string) => Reply): Promise<{ address: string, asked: string[] }> {
  const asked: string[] = []
  const address = await serve(t, async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (!request.url!.startsWith('/v1/messages?') && request.url !== '/v1/messages') return response.writeHead(404).end('{}')
    const { messages, tools = [], stream, model } = JSON.parse(Buffer.concat(chunks).toString())
    const heard = JSON.stringify(messages)
    // Besides its work, an agent asks for a title and the like.
    const reply = tools.length === 0 ? { text: 'A title' } : say(heard)
    if (tools.length > 0) asked.push(heard)
    const block = 'text' in reply
      ? { start: { type: 'text', text: '' }, delta: { type: 'text_delta', text: reply.text }, whole: { type: 'text', text: reply.text } }
      : {
          start: { type: 'tool_use', id: `toolu_${asked.length}`, name: reply.tool, input: {} },
          delta: { type: 'input_json_delta', partial_json: JSON.stringify(reply.input) },
          whole: { type: 'tool_use', id: `toolu_${asked.length}`, name: reply.tool, input: reply.input }
        }
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model, content: [] as unknown[], stop_reason: null as string | null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } }
    const reason = 'text' in reply ? 'end_turn' : 'tool_use'
    if (stream !== true) {
      return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ ...message, content: [block.whole], stop_reason: reason }))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of [
      { type: 'message_start', message },
      { type: 'content_block_start', index: 0, content_block: block.start },
      { type: 'content_block_delta', index: 0, delta: block.delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    response.end()
  })
  return { address, asked }
}
