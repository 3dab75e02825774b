import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { parse } from 'yaml'
import { testApp } from '../helpers/app.ts'
import { signingKey, testIssuer } from '../helpers/issuer.ts'
import { clientSecret, leadsTo, peopleProvider, personBy } from '../helpers/oidc.ts'
import { commandsUnder, readPage } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { until } from '../helpers/until.ts'
import { listen } from '../helpers/wire.ts'

/** The examples of docs/identity.md, with their issuers: the settings as they are there, but for the issuer's address. */

const baseUrl = 'https://handoff.example.com'
const now = () => Math.floor(Date.now() / 1000)

/** The blocks under a heading of the page. */
const under = (heading: string, language: string) => readPage('docs/identity.md').blocks.filter(block => block.heading === heading && block.language === language)

/** The service with an example's ISSUERS, whose one issuer is ours. */
async function serviceOf (t: Test, heading: string, issuer: string) {
  const [block] = under(heading, 'json')
  const [given] = JSON.parse(block!.text)
  return await testApp(t, { ISSUERS: JSON.stringify([{ ...given, issuer }]), BASE_URL: baseUrl })
}

t.test('Kubernetes: a pod’s token is in a file that is replaced, and keys of the cluster are, too', { skip: ofOneReplica }, async t => {
  const keys = [await signingKey('RS256', { kid: 'old', use: 'sig' }), await signingKey('RS256', { kid: 'new', use: 'sig' })] as const
  const cluster = await testIssuer(t, [keys[0].jwk])
  const service = await serviceOf(t, 'Kubernetes', cluster.url)
  const { metadata: { namespace }, spec: { template: { spec } } } = parse(under('Kubernetes', 'yaml')[0]!.text)
  const [container] = spec.containers
  const { audience, path } = spec.volumes[0].projected.sources[0].serviceAccountToken
  const { value: keyFile } = container.env.find(({ name }: { name: string }) => name === 'HANDOFF_KEY_FILE')
  t.equal(keyFile, `${container.volumeMounts[0].mountPath}/${path}`)
  t.equal(container.env.find(({ name }: { name: string }) => name === 'HANDOFF_URL').value, baseUrl)
  /** A token as the API server makes it. */
  const token = (key: typeof keys[number], lasts: number, more: { namespace?: string, name?: string, aud?: string } = {}) => {
    const { name = spec.serviceAccountName, namespace: within = namespace, aud = audience } = more
    return key.sign({
      aud: [aud],
      exp: now() + lasts,
      iat: now(),
      iss: cluster.url,
      jti: 'ca1f4cd8-0b5f-4f8e-93de-4c0f9d5c3a5b',
      'kubernetes.io': { namespace: within, node: { name: 'node-1', uid: 'n' }, pod: { name: 'builder-5c9', uid: 'p' }, serviceaccount: { name, uid: 's' } },
      nbf: now(),
      sub: `system:serviceaccount:${within}:${name}`,
    })
  }
  const mount = await scratchDir(t)
  let written = 0
  /** As the kubelet does it: a folder of its own for each version, and a link that is renamed. */
  const write = async (content: string) => {
    const folder = `..version_${++written}`
    await mkdir(join(mount, folder))
    await writeFile(join(mount, folder, path), content)
    await symlink(folder, join(mount, '..data_tmp'))
    await rename(join(mount, '..data_tmp'), join(mount, '..data'))
    if (written === 1) await symlink(join('..data', path), join(mount, path))
  }
  /** What a worker does: sends what is in the file, and after a 401 reads it once more. */
  const asBuilder = async (method: 'GET' | 'POST', url: string, body?: object) => {
    const ask = async () => await service.app.inject({ method, url, headers: { authorization: `Bearer ${await readFile(join(mount, path), 'utf8')}` }, ...body && { body } })
    const answer = await ask()
    return answer.statusCode === 401 ? await ask() : answer
  }
  const code = async (given: string, path = '/api/whoami', body?: object) =>
    (await service.app.inject({ method: body === undefined ? 'GET' : 'POST', url: path, headers: { authorization: `Bearer ${given}` }, ...body && { body } })).statusCode
  // It ends in 3 s: exp counts for half a minute longer.
  const old = await token(keys[0], -27)
  await write(old)
  t.match((await asBuilder('GET', '/api/whoami')).json(), { tenant: 'default', agent: 'k8s-builder', scopes: ['pass', 'catch', 'status'], inboxes: ['builds'], subject: 'system:serviceaccount:agents:builder' })
  const waiting = asBuilder('POST', '/api/catch?wait=20', { inbox: 'builds' })
  cluster.keys = [keys[0].jwk, keys[1].jwk]
  await write(await token(keys[1], 600))
  await until(async () => await code(old) === 401)
  // The wait ended with its token, and the next one goes on with the next token.
  const id = await service.pass({ to: 'builds' })
  t.match((await waiting).json(), { items: [{ handoff_id: id }] })
  t.equal((await asBuilder('POST', `/api/done/${id}`, { output: {} })).statusCode, 200)
  t.equal(await code(await token(keys[1], 600, { namespace: 'others' })), 401)
  t.equal(await code(await token(keys[1], 600, { aud: cluster.url })), 401, 'the API server’s own tokens')
  t.equal(await code(await token(keys[1], 600), '/api/catch', { inbox: 'other' }), 403)
  t.equal(await code(await token(keys[1], 600, { name: 'tester' }), `/api/cancel/${id}`, {}), 403)
})

t.test('pipelines: a job is who its repository and branch say, and its token is for this service', { skip: ofOneReplica }, async t => {
  const key = await signingKey('RS256', { kid: 'one', use: 'sig' })
  const ci = await testIssuer(t, [key.jwk])
  const service = await serviceOf(t, 'Pipelines', ci.url)
  const of = (repository: string, ref: string, more: object = {}) =>
    ({ iss: ci.url, sub: `repo:${repository}:ref:${ref}`, repository, repository_id: '4711', repository_owner: 'acme', ref, ref_type: 'branch', event_name: 'push', exp: now() + 300, iat: now(), nbf: now() - 5, ...more })
  /** Signs what a job asks for: the claims are the run's, and the audience is the job's choice. */
  const runs = new Map([['of-main', of('acme/web', 'refs/heads/main')]])
  const server = createServer(async ({ url, headers: { authorization } }, response) => {
    const claims = runs.get(authorization?.replace(/^bearer /i, '') ?? '')
    const aud = new URL(url!, ci.url).searchParams.get('audience')
    if (claims === undefined) return response.writeHead(401).end()
    response.end(JSON.stringify({ count: 1, value: await key.sign({ ...claims, aud }) }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const bin = await scratchDir(t)
  await symlink(join(projectRoot, 'dist/cli/main.js'), join(bin, 'handoff'))
  const job = spawn('sh', ['-euc', commandsUnder('docs/identity.md', 'Pipelines')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: `${bin}:${process.env.PATH}`,
      HANDOFF_URL: `http://127.0.0.1:${await listen(service.app)}`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of-main',
      ACTIONS_ID_TOKEN_REQUEST_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token?api-version=2.0`,
      GITHUB_SHA: '3f7a',
    },
  })
  const [said, errors, [code]] = await Promise.all([text(job.stdout), text(job.stderr), once(job, 'exit')])
  t.equal(code, 0, errors)
  const { items: [got] } = (await service.call('bob', 'POST', '/api/catch', { inbox: 'deploys' })).json()
  t.match(got, { task: 'Deploy 3f7a' })
  t.match(said, got.handoff_id)
  const who = async (claims: object) =>
    (await service.app.inject({ url: '/api/whoami', headers: { authorization: `Bearer ${await key.sign({ aud: baseUrl, ...claims })}` } })).json()
  t.match(await who(of('acme/web', 'refs/tags/v1.2')), { agent: 'ci-web', scopes: ['pass', 'status'] })
  t.match(await who(of('acme/api', 'refs/heads/main')), { agent: /^ci-acme-api\.[0-9a-f]{12}$/, scopes: ['status'] })
  t.match(await who(of('acme/web', 'refs/heads/main', { repository_id: '4712' })), { agent: /^ci-acme-web\./, scopes: ['status'] }, 'another repository of the same name')
  for (const [what, claims] of Object.entries({
    'another branch': of('acme/web', 'refs/heads/main-2'),
    'a pull request': of('acme/web', 'refs/pull/7/merge'),
    'somebody else’s organisation': of('acme-evil/web', 'refs/heads/main'),
    'another service': of('acme/web', 'refs/heads/main', { aud: 'https://elsewhere.example.com' }),
  })) t.match(await who(claims), { status: 401 }, what)
})

t.test('people: one group decides and sees the console, another only decides', { skip: ofOneReplica }, async t => {
  const [given] = JSON.parse(under('People', 'json')[0]!.text)
  const [operators, approvers] = given.sign_in.rules.map(({ when }: { when: { groups: string } }) => when.groups) as [string, string]
  const oidc = await peopleProvider(t, {
    ann: { name: 'Ann', email: 'ann@example.com', groups: ['staff', operators] },
    ben: { name: 'Ben', email: 'ben@example.com', groups: [approvers] },
    cid: { name: 'Cid', email: 'cid@example.com', groups: ['staff'] },
  })
  await oidc.register(baseUrl)
  const secret = join(await scratchDir(t), 'secret')
  await writeFile(secret, clientSecret)
  const service = await testApp(t, {
    ISSUERS: JSON.stringify([{ ...given, issuer: oidc.url, sign_in: { ...given.sign_in, client_secret: `@${secret}` } }]), BASE_URL: baseUrl
  })
  for (const [who, first, mayOperate] of [['ann', '/approvals', true], ['ben', '/approvals', false]] as const) {
    const person = personBy(service, oidc)
    t.equal(leadsTo(await person.signIn(who)), first)
    t.equal((await person.ask('/approvals')).statusCode, 200)
    const id = await service.pass({ require_human: true })
    t.equal((await person.ask('/console/keys')).statusCode === 200, mayOperate)
    t.match((await person.ask(`/approvals/${id}`)).body, new RegExp(`class="who">${who}-example.com\\.[0-9a-f]{12}<`))
  }
  t.equal((await personBy(service, oidc).signIn('cid')).statusCode, 403)
})
