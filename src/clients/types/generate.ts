/** A part of the build: writes the types of the clients into their sources, where git doesn't keep them. */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pythonTypes } from './python.ts'
import { apiSchemas } from './schemas.ts'
import { typescriptTypes } from './typescript.ts'

const clientsFolder = process.argv[2]
if (clientsFolder === undefined) throw new Error('name the folder of the clients’ sources')
const schemas = apiSchemas()
const { py, pyi } = pythonTypes(schemas)
// The package has only the types that its sources name, as api.X or as ErrorCode.
const folder = join(clientsFolder, 'typescript')
const sources = readdirSync(folder).filter(file => file.endsWith('.ts') && file !== 'api.ts')
  .map(file => readFileSync(join(folder, file), 'utf8')).join('\n')
const named = new Set([...sources.matchAll(/\b(?:api\.|(?=ErrorCode\b))(\w+)/g)].map(([, name]) => name))
const files = {
  'typescript/api.ts': typescriptTypes(Object.fromEntries(Object.entries(schemas).filter(([name]) => named.has(name)))),
  'python/agent_handoff/types.py': py,
  'python/agent_handoff/types.pyi': pyi,
}
for (const [file, text] of Object.entries(files)) writeFileSync(join(clientsFolder, file), text)
