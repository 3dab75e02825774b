import t from 'tap'
import { pathToFileURL } from 'node:url'
import { scratchDir } from '../helpers/processes.ts'
import { passesInPython } from '../helpers/python.ts'

t.test('the Python client, with the real service', t => passesInPython(t, ['test_client', 'test_keys']))

t.test('its files', async t => await passesInPython(t, ['test_files'], { FILES_URL: String(pathToFileURL(await scratchDir(t))) }))
