import { Type } from '@sinclair/typebox'
import { invalid } from '../core/errors.ts'
import { cutMembers } from '../core/json.ts'
import { a2aOptions, cardSchema } from '../core/schemas/cards.ts'
import type { GivenCard } from '../core/schemas/cards.ts'
import { passBody } from '../core/schemas/handoffs.ts'
import type { InboxSettingsBody } from '../core/schemas/inboxes.ts'
import { compile, readFaults } from '../core/validator.ts'
import type { Validate } from '../core/validator.ts'
import { refuseContextLabel } from '../handoffs/lifecycle/option-words.ts'
import type { OperationCall, Services } from './operation.ts'

/** An inbox's A2A card, as an operator gives it: its form, and that pass takes its options. */

const isCard = compile(cardSchema)

/** @returns what reads the card's JSON text: null if it is taken away, undefined if it stays; it throws Problems */
export function cardIn ({ handoffs, limits }: Pick<Services, 'handoffs' | 'limits'>) {
  const properties = Object.entries(passBody(limits).properties).filter(([name]) => a2aOptions.includes(name))
  const areOptions = compile(Type.Object(Object.fromEntries(properties), { additionalProperties: false }))
  return async ({ body, members, caller }: OperationCall<InboxSettingsBody>): Promise<string | null | undefined> => {
    if (body.card == null) return body.card
    const raw = members.raw('card')!
    const card = JSON.parse(raw.toString()) as GivenCard
    check(isCard, card, '/card')
    for (const kind of ['defaults', 'fixed'] as const) {
      const options = card.options?.[kind]
      if (options === undefined) continue
      const at = `/card/options/${kind}`
      check(areOptions, options, at)
      refuseContextLabel(options, at)
      if (options.result_schema == null) continue
      const schema = ['options', kind, 'result_schema'].reduce((json, name) => cutMembers(json).raw(name)!, raw)
      await handoffs.checkSchema(schema, caller, `${at.slice(1)}/result_schema`)
    }
    return raw.toString()
  }
}

/** What is wrong is answered as what is wrong with a body. @param at pointer to it @throws {Problem} */
function check (isValid: Validate, value: unknown, at: string): void {
  if (isValid(value)) return
  const faults = readFaults(isValid.errors!, 'body')
  throw invalid(...faults.map(({ pointer, message }) => ({ pointer: at + pointer, message })))
}
