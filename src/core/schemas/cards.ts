import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'

/** An inbox's A2A card, as operators give it. */

const mediaModes = (description: string) => Type.Optional(Type.Array(
  Type.String({ pattern: '^[!#$&^_.+A-Za-z0-9*-]{1,127}/[!#$&^_.+A-Za-z0-9*-]{1,127}$' }),
  { minItems: 1, maxItems: 50, description }
))
const textOfLength = (maxLength: number, description: string) => Type.String({ minLength: 1, maxLength, description })
const webAddress = (description: string) =>
  Type.Optional(Type.String({ pattern: '^https?://[!-~]+$', maxLength: 2048, description }))

/** The members of pass that may be options of what comes by A2A. */
export const a2aOptions = [
  'priority', 'group', 'expires_in', 'work_within', 'heartbeat_within', 'max_attempts', 'retry_delay', 'require_human',
  'labels', 'result_schema', 'parent'
]

const optionsOfPass = (description: string) => Type.Optional(Type.Object(
  Object.fromEntries(a2aOptions.map(name => [name, Type.Optional(Type.Unknown())])),
  { additionalProperties: false, description }
))

export const cardSchema = Type.Object({
  description: textOfLength(2000, 'What the agent does.'),
  name: Type.Optional(textOfLength(200, 'Its name; by default the inbox’s.')),
  version: Type.Optional(textOfLength(64, 'Its version; default 1.')),
  skills: Type.Array(Type.Object({
    id: textOfLength(200, 'Its id.'),
    name: textOfLength(200, 'Its name.'),
    description: textOfLength(2000, 'What it is.'),
    tags: Type.Array(textOfLength(100, 'A word for it.'), { minItems: 1, maxItems: 20 }),
    examples: Type.Optional(Type.Array(textOfLength(2000, 'What one may ask.'), { maxItems: 20 })),
    inputModes: mediaModes('Media types that it takes, if not the agent’s.'),
    outputModes: mediaModes('Media types that it gives, if not the agent’s.'),
  }, { additionalProperties: false }), { minItems: 1, maxItems: 50, description: 'What the agent can do.' }),
  public: Type.Optional(Type.Boolean({ description: 'Whether the card is shown without a key.' })),
  documentationUrl: webAddress('Where its documentation is.'),
  iconUrl: webAddress('Its icon.'),
  defaultInputModes: mediaModes('Media types that it takes; by default text/plain and application/json.'),
  defaultOutputModes: mediaModes('Media types that it gives; by default text/plain and application/json.'),
  options: Type.Optional(Type.Object({
    defaults: optionsOfPass('What is passed unless a client says otherwise.'),
    fixed: optionsOfPass('What no client changes.'),
  }, { additionalProperties: false, description: 'Members of pass for what comes by A2A.' })),
  deduplicate: Type.Optional(Type.Boolean({ description: 'Whether the same message is one task; default true.' })),
}, { additionalProperties: false })
export type GivenCard = Static<typeof cardSchema>
