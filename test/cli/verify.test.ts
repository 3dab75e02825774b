import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { handoff, parsed } from '../helpers/command.ts'
import { scratchDir } from '../helpers/processes.ts'
import { signedCases, signingService } from '../helpers/signed-cases.ts'

/** `handoff verify`: needs no key, and its exit status says whether the decision can be relied on. */

const service = await signingService(t)
const cases = await signedCases(service)
const folder = await scratchDir(t)
let count = 0
function file (text: string): string {
  const path = join(folder, `${++count}.json`)
  writeFileSync(path, text)
  return path
}
const env = { HANDOFF_URL: service.address, XDG_CONFIG_HOME: folder, DATA_DIR: folder }
const run = (args: string[], more: Record<string, string> = env) => handoff(['verify', ...args], { env: more })

t.test('0: what was signed; 1: the error', async t => {
  for (const { name, text, code, jwks, issuer } of cases) {
    const options = [...jwks === undefined ? [] : ['--jwks', JSON.stringify(jwks)], ...issuer === undefined ? [] : ['--issuer', issuer]]
    const ended = await run([file(text), '--json', ...options])
    const answer = parsed(ended)
    t.equal(ended.code, code === undefined ? 0 : 1, name)
    if (code === undefined) t.match(answer, { iss: service.address, state: 'approved' }, name)
    else t.strictSame([answer.code, answer.retryable], [code, false], name)
  }
  const right = cases[0]!
  const { code, stdout, stderr } = await run([file(`${right.text}\n`)])
  t.strictSame([code, stderr], [0, ''])
  t.match(stdout, new RegExp(`^iss +${service.address}\nhandoff_id +\\S+\n[^]*\nnote +"?Go`))
  t.match(await run([file(cases.find(one => one.name === 'done, as a person reads it')!.text)]), { code: 1, stdout: '', stderr: 'The decision can’t be relied on: the content is gone. (digest)\n' })
  const refused = await run([file(cases.find(one => one.code === 'digest')!.text)])
  t.match(refused, { code: 1, stdout: '', stderr: 'The decision can’t be relied on: the content is another one. (digest)\n' })
})

t.test('keys at hand need no service', async t => {
  const jwks = join(folder, 'jwks.json')
  writeFileSync(jwks, (await service.app.inject('/.well-known/jwks.json')).body)
  const away = { ...env, HANDOFF_URL: 'http://127.0.0.1:1' }
  const path = file(cases[0]!.text)
  t.equal((await run([path, '--jwks', `@${jwks}`, '--issuer', service.address], away)).code, 0)
  t.match(await run([path, '--jwks', `@${jwks}`], away), { code: 1, stderr: /\(issuer\)\n$/ })
})

t.test('2: misuse', async t => {
  for (const [args, words] of [
    [[], /file/], [[join(folder, 'nowhere')], /can’t be read/], [[file('{"a":1')], /can’t be read/], [[file('[]')], /isn’t the answer/], [[file('null')], /isn’t the answer/],
    [[file(`{"items":[${cases[0]!.text}]}`)], /isn’t the answer/], [[file(cases[0]!.text), '--jwks', '{"key":1}'], /list of keys/], [[file(cases[0]!.text), '--url', 'nowhere'], /http\(s\) URL/],
  ] as const) {
    t.match(await run([...args]), { code: 2, stdout: '', stderr: words })
  }
})
