import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { request as ask } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { serve } from '../helpers/client.ts'
import { builtHandoff, handoff } from '../helpers/command.ts'
import { filesApp, sha256 } from '../helpers/files.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

/** Files that commands pass, and that `handoff work` gives to a command and sends with its result. */

const service = await filesApp(t)
const { url, call, pass, put, directory } = service

/** A folder for files of a test's own, and how the command runs: what it makes for its time is in `tmp`. */
async function start (t: Parameters<typeof scratchDir>[0]) {
  const folder = await scratchDir(t)
  const tmp = join(folder, 'tmp')
  await mkdir(tmp)
  const envOf = (who: 'alice' | 'bob') => ({ HANDOFF_URL: url, HANDOFF_KEY: secrets[who], TMPDIR: tmp })
  const run = async (who: 'alice' | 'bob', ...args: string[]) => await handoff(args, { env: envOf(who) })
  const work = async (script: string) => await run('bob', 'work', 'w', '--once', '--', 'sh', '-c', script)
  return { folder, tmp, envOf, run, work }
}

const statusOf = async (id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json()
const uriOf = async (bytes: string) => `handoff-file:${await put(bytes)}`

t.test('a command passes files, works on them, and what it leaves goes with the result', async t => {
  const { folder, run, work } = await start(t)
  await writeFile(join(folder, 'ä 1.csv'), 'first')
  await writeFile(join(folder, 'b.csv'), 'second')
  const passed = await run('alice', 'pass', '--task', 't', '--to', 'w', '--file', join(folder, 'ä 1.csv'), '--file', join(folder, 'b.csv'), '--idempotency-key', 'k', '--json')
  const { handoff_id: id } = JSON.parse(passed.stdout)
  t.match((await run('alice', 'pass', '--task', 't', '--to', 'w', '--file', join(folder, 'ä 1.csv'), join(folder, 'b.csv'), '--idempotency-key', 'k', '--json')).stdout, id, 'again')
  t.match(await run('alice', 'pass', '--task', 't', '--file', join(folder, 'none')), { code: 2, stderr: /none" can’t be sent: ENOENT/ })
  t.match(await work(`cd "$HANDOFF_FILES" && cat "ä 1.csv" b.csv > "$HANDOFF_OUT/both" && cat files.json
    mkdir "$HANDOFF_OUT/folder" && ln -s /etc/passwd "$HANDOFF_OUT/link" && mkfifo "$HANDOFF_OUT/pipe" && echo > "$HANDOFF_OUT/folder/deep" && printf x > "$HANDOFF_OUT/a b"`), { code: 0, stderr: new RegExp(`done ${id}\n$`) })
  const { result_files: files, result: { text } } = await statusOf(id)
  t.match(files, [{ name: 'a b', bytes: 1 }, { name: 'both', sha256: sha256('firstsecond') }])
  t.equal(files.length, 2, 'neither folders nor links nor pipes')
  const listed = JSON.parse(text)
  t.match(listed, [{ name: 'ä 1.csv', bytes: 5, sha256: sha256('first'), uri: /^handoff-file:/, path: /files\/ä 1\.csv$/ }, { name: 'b.csv' }])
  await t.rejects(readdir(join(listed[0].path, '../..')), { code: 'ENOENT' }, 'all of it is removed')
  const other = await pass({ to: 'w' })
  t.match(await work('ls -A "$HANDOFF_FILES" "$HANDOFF_OUT"; stat -c %a "$HANDOFF_OUT/.."'), { code: 0 })
  t.match(await statusOf(other), { result: { text: /^[^\n]+files:\n\n[^\n]+out:\n700\n$/ } })
  t.notOk('result_files' in await statusOf(other))
  const third = await pass()
  await call('bob', 'GET', `/api/catch/${third}`)
  t.match(await run('bob', 'done', third, '--file', join(folder, 'b.csv')), { code: 0 })
  t.match(await statusOf(third), { result: null, result_files: [{ name: 'b.csv' }] })
})

t.test('files go through a proxy too', async t => {
  const { folder, envOf } = await start(t)
  await writeFile(join(folder, 'large'), Buffer.alloc(1_000_000, 'x'))
  const seen: string[] = []
  const through = await serve(t, (request, response) => {
    seen.push(`${request.method} ${new URL(request.url!).pathname.split('/')[1]} ${request.headers['content-length']}`)
    const onward = ask(request.url!, { method: request.method!, headers: request.headers }, answer => answer.pipe(response.writeHead(answer.statusCode!, answer.headers)))
    request.pipe(onward)
  })
  const passed = await handoff(['pass', '--task', 't', '--file', join(folder, 'large'), '--json'], { env: { ...envOf('alice'), HTTP_PROXY: through } })
  t.match(passed, { code: 0, stderr: '' })
  const { handoff_id: id } = JSON.parse(passed.stdout)
  t.match((await call('bob', 'GET', `/api/catch/${id}`)).json().files, [{ name: 'large', bytes: 1_000_000 }])
  t.ok(seen.includes('PUT files 1000000'), seen.join())
})

t.test('no name of a file takes the place of another', async t => {
  const { work } = await start(t)
  const id = await pass({ to: 'w', files: [{ name: 'files.json', uri: await uriOf('one') }, { name: 'FILES.json', uri: await uriOf('two') }, { name: 'n'.repeat(255), uri: await uriOf('three') }, { name: 'link', uri: 'https://x.example/' }] })
  t.match(await work('cat "$HANDOFF_FILES/files.json"; cat "$HANDOFF_FILES"/*/* >&2'), { code: 0, stderr: /onetwo|twoone/ })
  t.match(JSON.parse((await statusOf(id)).result.text), [{ path: /\/other-\w+\/files\.json$/ }, { path: /\/other-\w+\/FILES\.json$/ }, { path: /\/n{255}$/ }, { name: 'link', path: null }])
})

t.test('a file that can’t be had fails the handoff, and no command is started', async t => {
  const { folder, work } = await start(t)
  const id = await pass({ to: 'w', max_attempts: 2, retry_delay: 0, files: [{ name: 'gone', uri: await uriOf('gone') }] })
  for (const name of await readdir(directory, { recursive: true })) if ((await readFile(join(directory, name), 'utf8').catch(() => '')) === 'gone') await rm(join(directory, name))
  t.match(await work(`touch ${folder}/began`), { code: 0, stderr: new RegExp(`failed ${id} "file .*404`) })
  t.match(await statusOf(id), { status: 'failed', reissued_as: undefined, error: { message: 'file "gone": The store of files answered 404.' } }, 'without another attempt')
  t.notOk((await readdir(folder)).includes('began'))
  const many = await pass({ to: 'w' })
  t.match(await work('cd "$HANDOFF_OUT"; for n in $(seq 51); do echo > $n; done'), { code: 0 })
  t.match(await statusOf(many), { status: 'failed', error: { message: 'the command left 51 files in HANDOFF_OUT; a result has at most 50' } })
  const named = await pass({ to: 'w' })
  t.match(await work('echo > "$HANDOFF_OUT/a\\\\b"'), { code: 0 })
  t.match(await statusOf(named), { status: 'failed', error: { message: /^file "a\\\\b" in HANDOFF_OUT: .*name/ } })
})

t.test('links are fetched with --fetch-links, from https alone, and are what the handoff says', async t => {
  const { folder, envOf } = await start(t)
  execFileSync('openssl', 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout key -out crt'.split(' '), { cwd: folder, stdio: 'ignore' })
  const [key, cert] = [await readFile(join(folder, 'key')), await readFile(join(folder, 'crt'))]
  const keys: unknown[] = []
  const server = createServer({ key, cert }, (request, response) => {
    keys.push(request.headers.authorization)
    if (request.url === '/to') return response.writeHead(302, { location: '/a' }).end()
    if (request.url === '/http') return response.writeHead(302, { location: `${url}/healthz` }).end()
    if (request.url === '/round') return response.writeHead(302, { location: '/round' }).end()
    response.end(request.url === '/a' ? 'linked' : undefined)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  const at = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { ...envOf('bob'), NODE_EXTRA_CA_CERTS: join(folder, 'crt') }
  const ends = async (file: object) => {
    const id = await pass({ to: 'w', max_attempts: 2, retry_delay: 0, files: [{ name: 'l', ...file }] })
    await builtHandoff(['work', 'w', '--once', '--fetch-links', '--', 'sh', '-c', 'cat "$HANDOFF_FILES/l"'], { env })
    return await statusOf(id)
  }
  t.match(await ends({ uri: `${at}/to`, bytes: 6, sha256: sha256('linked') }), { result: { text: 'linked' } })
  for (const [file, message] of [
    [{ uri: `${at}/a`, sha256: sha256('other') }, 'It has another SHA-256.'],
    [{ uri: `${at}/a`, bytes: 5 }, 'It has more than 5 bytes.'],
    [{ uri: `${at}/http` }, 'It redirects to what is no https URL.'],
    [{ uri: `${at}/round` }, 'It redirects too often.'],
  ] as const) {
    t.match(await ends(file), { status: 'failed', reissued_as: undefined, error: { message: `file "l": ${message}` } })
  }
  t.strictSame(keys.filter(key => key !== undefined), [], 'no key is sent')
})

t.test('a signal leaves no folder, neither the first nor a second', async t => {
  const { folder, tmp, envOf } = await start(t)
  const began = async (name: string) => {
    await pass({ to: name })
    const child = spawn(process.execPath, [join(projectRoot, 'dist/cli/main.js'), 'work', name, '--', 'sh', '-c', `touch ${folder}/${name}; while [ ! -e ${folder}/go ]; do sleep 0.05; done`],
      { env: { PATH: process.env.PATH, ...envOf('bob') }, stdio: 'ignore' })
    t.teardown(() => { child.kill('SIGKILL') })
    await until(async () => (await readdir(folder)).includes(name))
    return child
  }
  const [first, second] = [await began('first'), await began('second')]
  t.equal((await readdir(tmp)).length, 2)
  const ended = [once(first, 'exit'), once(second, 'exit')]
  first.kill('SIGTERM')
  second.kill('SIGTERM')
  await sleep(700)
  second.kill('SIGTERM')
  await ended[1]
  t.equal((await readdir(tmp)).length, 1)
  await writeFile(join(folder, 'go'), '')
  await ended[0]
  t.strictSame(await readdir(tmp), [])
})
