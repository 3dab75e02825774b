/** A part of the build: writes the types of the clients into their sources, where git doesn't keep them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pythonTypes } from './python.ts'
import { apiSchemas } from './schemas.ts'
import { typescriptTypes } from './typescript.ts'

const clientsFolder = process.argv[2]
if (clientsFolder === undefined) throw new Error('name the folder of the clients’ sources')
const schemas = apiSchemas()
const { py, pyi } = pythonTypes(schemas)
const files = {
  'typescript/api.ts': typescriptTypes(schemas),
  'python/agent_handoff/types.py': py,
  'python/agent_handoff/types.pyi': pyi,
}
for (const [file, text] of Object.entries(files)) writeFileSync(join(clientsFolder, file), text)
