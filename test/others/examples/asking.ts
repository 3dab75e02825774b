// In a project of your own: from 'agent-handoff-client'.
import type { HandoffClient } from '../../../src/clients/typescript/index.ts'

const usual = 'the usual account'

/** A worker that pays invoices. It asks a person about a large one in the middle of its work, and goes on with the answer. */
export async function pay (client: HandoffClient, inbox: string, limit: number, signal: AbortSignal): Promise<void> {
  await client.work(inbox, async ({ output }, { ask }) => {
    const { invoice, amount } = output as { invoice: string, amount: number }
    if (amount <= limit) return { paid: amount, from: usual }
    const { pay, account = usual } = await ask(`Invoice ${invoice} is about ${amount}. Pay it, and from which account?`, {
      details: { invoice, amount },
      // The page where the person answers makes its form of this.
      schema: {
        type: 'object',
        required: ['pay'],
        properties: {
          pay: { type: 'boolean', title: 'Pay it' },
          account: { type: 'string', enum: [usual, 'the reserve'] },
        },
      },
      expiresIn: 3600,
    })
    return pay === true ? { paid: amount, from: account } : { paid: 0 }
  }, { signal })
}
