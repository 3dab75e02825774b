import { Ajv } from 'ajv'
import type { FastifyInstance, FastifySchemaValidationError } from 'fastify'

/** Strict: "false" is not false, and an unknown member is an error. All errors at once: a body has at most 64 members. */
const options = { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: true, allowUnionTypes: true }

interface QuerySchema { properties?: Record<string, { type?: string }> }
type Validate = ((data: Record<string, unknown>) => boolean) & { errors?: FastifySchemaValidationError[] | null }

/** Holds a value to a schema as a request's body is. @returns what is wrong; null where nothing is */
export function strictValidator (schema: object): (value: unknown) => FastifySchemaValidationError[] | null {
  const validate = new Ajv(options).compile(schema) as unknown as Validate
  return value => validate(value as Record<string, unknown>) ? null : validate.errors ?? []
}

/** How requests are held to their schemas. */
export function useStrictValidation (app: FastifyInstance): void {
  const ajv = new Ajv(options)
  app.setValidatorCompiler(({ schema, httpPart }) => {
    const validate = ajv.compile(schema as object) as Validate
    return httpPart === 'querystring' ? readingIntegers(schema as QuerySchema, validate) : validate
  })
}

/** A query has only text, so there "5" is 5. Ajv's own coercion takes 0x5, 5e0 and, for a number, 1e999 too. */
function readingIntegers ({ properties = {} }: QuerySchema, validate: Validate): Validate {
  const names = Object.keys(properties).filter(name => properties[name]?.type === 'integer')
  const check: Validate = query => {
    for (const name of names) {
      const text = query[name]
      if (typeof text === 'string' && /^-?\d{1,15}$/.test(text)) query[name] = Number(text)
    }
    const valid = validate(query)
    check.errors = validate.errors ?? null
    return valid
  }
  return check
}
