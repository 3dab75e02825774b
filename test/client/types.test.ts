import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { testApp } from '../helpers/app.ts'
import { clientTypes } from '../helpers/client-types.ts'
import { projectRoot } from '../helpers/service.ts'

t.test('the client’s types are those of /openapi.json', async t => {
  const { app } = await testApp(t)
  const file = join(projectRoot, 'src/client/api.ts')
  const made = await clientTypes((await app.inject('/openapi.json')).json())
  if (process.env.CLIENT_TYPES === 'write') await writeFile(file, made)
  t.equal(await readFile(file, 'utf8'), made)
})
