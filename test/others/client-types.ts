import openapiTS, { astToString } from 'openapi-typescript'

type Json = Record<string, any>

/**
 * The types of what agents ask and are answered, made from /openapi.json: `PassBody`, `PassAnswer` and so on, by the operations' ids.
 * Refusals are left out, since the client has an error of its own for them, and so are examples: the package stays small.
 */
export async function clientTypes (document: Json): Promise<string> {
  const schemas: Json = {}
  for (const [path, methods] of Object.entries<Json>(document.paths)) {
    // The client doesn't manage webhooks: that is an operator's work.
    if (!path.startsWith('/api/') || path.startsWith('/api/webhooks')) continue
    for (const { operationId, requestBody, responses } of Object.values<Json>(methods)) {
      const name = operationId[0].toUpperCase() + operationId.slice(1)
      if (requestBody !== undefined) schemas[`${name}Body`] = schemaOf(requestBody)
      const answers = Object.entries<Json>(responses).filter(([status]) => status.startsWith('2')).map(([, response]) => schemaOf(response))
      schemas[`${name}Answer`] = answers.length === 1 ? answers[0] : { anyOf: answers }
    }
  }
  schemas.ErrorCode = { type: 'string', enum: document.components.schemas.Problem.properties.code.enum, description: 'The codes of refusals.' }
  const made = await openapiTS({ openapi: '3.1.0', info: document.info, paths: {}, components: { schemas } }, { rootTypes: true, rootTypesNoSchemaPrefix: true })
  return `// Made from /openapi.json: CLIENT_TYPES=write npm run test:smoke -- test/others/client-types.smoke.test.ts makes it anew.\n${withoutNoise(astToString(made))}`
}

/** An answer without a body is null. */
function schemaOf ({ content }: Json): Json {
  if (content === undefined) return { type: 'null' }
  return plain(content['application/json'].schema)
}

/** Without what a type can't say. */
function plain (value: any): any {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([name, inner]) => !(name === 'examples' && Array.isArray(inner)) && name !== 'format' && name !== 'default')
  return Object.fromEntries(kept.map(([name, inner]) => [name, plain(inner)]))
}

/** Without what says nothing more, and would be a tenth of the package. An object with one member is one line, and so is a comment. */
function withoutNoise (types: string): string {
  return types.replaceAll(/^ *\/\*\* @enum .*\n|^ *\* @enum .*\n|^export (type (paths|webhooks|operations|\$defs)) .*\n/gm, '').replaceAll('* @description ', '* ')
    .replaceAll(/\{\n *([^\n{}*]+);\n *\}/g, '{ $1 }').replaceAll(/\/\*\*\n *\* (.*)\n *\*\//g, '/** $1 */')
}
