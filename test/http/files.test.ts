import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import files from '@fastify/static'
import Fastify from 'fastify'
import t from 'tap'
import { keepFilesInMemory } from '../../src/http/fixed.ts'
import { scratchDir } from '../helpers/processes.ts'

t.test('files are served from memory', async t => {
  const root = await scratchDir(t)
  await writeFile(join(root, 'file.txt'), '0123456789')
  const app = Fastify()
  t.teardown(() => app.close())
  keepFilesInMemory(app)
  await app.register(files, { root })

  const whole = await app.inject('/file.txt')
  t.equal(whole.body, '0123456789')
  t.equal(whole.headers['content-length'], '10')

  // The same length, so that only the content differs.
  await writeFile(join(root, 'file.txt'), 'abcdefghij')
  t.equal((await app.inject('/file.txt')).body, '0123456789', 'not read again')

  const part = await app.inject({ url: '/file.txt', headers: { range: 'bytes=2-4' } })
  t.equal(part.statusCode, 206)
  t.equal(part.body, '234')
  t.equal(part.headers['content-range'], 'bytes 2-4/10')

  const head = await app.inject({ method: 'HEAD', url: '/file.txt' })
  t.equal(head.headers['content-length'], '10')
  t.equal(head.body, '')

  const fresh = await app.inject('/file.txt')
  const unchanged = await app.inject({ url: '/file.txt', headers: { 'if-none-match': fresh.headers.etag as string } })
  t.equal(unchanged.statusCode, 304)
  t.equal(unchanged.body, '')
})
