import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { scratchDir } from '../helpers/processes.ts'
import { npmStart } from '../helpers/service.ts'

/** Large files, and many at once, at an `npm start`, which keeps them in its data directory: what it holds of them in memory. */

const DATA_DIR = await scratchDir(t)
const { address } = await npmStart(t, { DATA_DIR })
const key = (await readFile(join(DATA_DIR, 'agent.key'), 'utf8')).trim()
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }

async function resident (): Promise<number> {
  const text = await (await fetch(`${address}/metrics`)).text()
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)![1])
}

const block = randomBytes(2 ** 20)

/** @param blocks of a mebibyte @returns the file's id, once it is there */
async function put (blocks: number): Promise<string> {
  const hash = createHash('sha256')
  for (let n = 0; n < blocks; n++) hash.update(block)
  const made = await fetch(`${address}/api/files`, { method: 'POST', headers, body: JSON.stringify({ name: 'large', bytes: blocks * block.length, sha256: hash.digest('hex') }) })
  if (made.status !== 201) throw new Error(await made.text())
  const { file_id: id, upload } = await made.json() as { file_id: string, upload: { url: string, headers: Record<string, string> } }
  const sending = request(upload.url, { method: 'PUT', headers: upload.headers })
  const answered = once(sending, 'response')
  for (let n = 0; n < blocks; n++) if (!sending.write(block)) await once(sending, 'drain')
  sending.end()
  const [answer] = await answered as [IncomingMessage]
  answer.resume()
  if (answer.statusCode !== 204) throw new Error(String(answer.statusCode))
  return id
}

async function urlOf (id: string): Promise<string> {
  const { url } = await (await fetch(`${address}/api/files/${id}`, { headers })).json() as { url: string }
  return url
}

/** @param during called with each piece @returns how many bytes came */
async function get (url: string, during: (bytes: number) => Promise<void> | void = () => {}): Promise<number> {
  const sent = request(url, { agent: false }).end()
  const [answer] = await once(sent, 'response') as [IncomingMessage]
  let bytes = 0
  for await (const some of answer as AsyncIterable<Buffer>) {
    bytes += some.length
    await during(bytes)
  }
  return bytes
}

t.test('a gibibyte up and down', async t => {
  // What a first transfer loads and allocates isn't of this one.
  await get(await urlOf(await put(64)))
  let more = Infinity
  // On a busy machine the collector comes late. What is held for good is there in each round.
  for (let round = 0; round < 3 && more >= 40 * 10 ** 6; round++) {
    const before = await resident()
    let most = 0
    const watching = setInterval(async () => { most = Math.max(most, await resident()) }, 100)
    const id = await put(1024)
    t.equal(await get(await urlOf(id)), 2 ** 30)
    clearInterval(watching)
    most = Math.max(most, await resident())
    t.comment(`${Math.round(before / 2 ** 20)} MiB before, ${Math.round(most / 2 ** 20)} at most`)
    more = most - before
  }
  t.ok(more < 40 * 10 ** 6, `${more} bytes more`)
})

t.test('200 downloads at once, whose clients read a little and wait', async t => {
  const url = await urlOf(await put(16))
  const before = await resident()
  let begun = 0
  let go = () => {}
  const all = new Promise<void>(resolve => { go = resolve })
  const downloads = Array.from({ length: 200 }, () => {
    let isFirst = true
    return get(url, async () => {
      if (!isFirst) return
      isFirst = false
      if (++begun === 200) go()
      await all
    })
  })
  await all
  const during = await resident()
  t.comment(`${Math.round((during - before) / 2 ** 20)} MiB for 200`)
  t.ok(during - before < 200 * 2 ** 20, 'at most a megabyte each')
  t.ok(during < 512 * 2 ** 20, 'and within what a process has')
  t.strictSame(new Set(await Promise.all(downloads)), new Set([16 * 2 ** 20]))
})
