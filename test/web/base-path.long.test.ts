import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { hasNginx, runNginx } from '../faults/fleet/nginx.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { faultsOf, signIn, skip as skipBrowser, webApp } from '../helpers/browser.ts'
import { form } from '../helpers/forms.ts'
import { scratchDir } from '../helpers/processes.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { listen } from '../helpers/wire.ts'

const skip = skipBrowser || ofOneReplica || (hasNginx() ? false : 'nginx is not installed')

/** Two services on one host, each below a path: nginx strips the first one's, and forwards the second one's. */
async function twoServices (t: Test) {
  const port = await freePort(loopback)
  const at = `http://127.0.0.1:${port}`
  const first = await webApp(t, { BASE_URL: `${at}/first`, TRUSTED_PROXIES: '127.0.0.1' })
  const second = await testApp(t, { BASE_URL: `${at}/second/of-two/`, TRUSTED_PROXIES: '127.0.0.1', APPROVER_KEYS: `erin:${secrets.approver2}` })
  const dir = await scratchDir(t)
  const file = join(dir, 'nginx.conf')
  await writeFile(file, `
daemon off; master_process off; pid nginx.pid; error_log stderr warn;
events {}
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path answers; fastcgi_temp_path none; uwsgi_temp_path none; scgi_temp_path none;
  proxy_http_version 1.1;
  proxy_set_header Host $http_host;
  proxy_set_header X-Forwarded-For $remote_addr;
  server {
    listen 127.0.0.1:${port};
    location /first/ { proxy_pass ${first.address}/; }
    location /second/of-two/ { proxy_pass http://127.0.0.1:${await listen(second.app)}; }
    location / { return 404 "not the service's"; }
  }
}`)
  await runNginx(t, file, dir, port)
  const ask = async ({ call }: Pick<typeof second, 'call'>, task: string) => (await call('alice', 'POST', '/api/pass', { task, require_human: true })).json() as { handoff_id: string, approval_url: string }
  return { at, first, second, ask }
}

t.test('behind nginx, with the path stripped or forwarded, a person can follow a link, sign in, decide and sign out', { skip }, async t => {
  const { at, first, second, ask } = await twoServices(t)
  for (const [service, base, key] of [[first, '/first', secrets.approver], [second, '/second/of-two', secrets.approver2]] as const) {
    const [linked, other] = [await ask(service, 'the linked one'), await ask(service, 'the other one')]
    const page = await first.visitor({ baseURL: at })
    const faults = faultsOf(page)
    const asked: string[] = []
    page.on('request', request => { asked.push(new URL(request.url()).pathname) })
    await page.goto(linked.approval_url)
    t.equal(page.url(), `${at}${base}/approvals/sign-in?next=${encodeURIComponent(`/approvals/${linked.handoff_id}`)}`)
    await page.getByLabel('Approver key').fill('wrong-key-0123456789')
    await page.keyboard.press('Enter')
    await page.getByText('This key can’t be used here').waitFor()
    await signIn(page, key)
    t.equal(page.url(), linked.approval_url, 'back to where the link led')
    t.equal(await page.evaluate('getComputedStyle(document.querySelector("header")).display'), 'flex', 'the style is there')
    await page.getByRole('button', { name: 'Reject', exact: true }).click()
    await page.getByText('To reject, say why').waitFor()
    await page.getByLabel('Note').fill('because')
    await page.getByRole('button', { name: 'Reject', exact: true }).click()
    await page.getByText('You rejected').waitFor()
    t.equal(page.url(), `${at}${base}/approvals?tab=approvals&decided=${linked.handoff_id}`)
    await page.getByRole('link', { name: /the other one/ }).waitFor()
    const late = await ask(service, 'passed later')
    await page.getByRole('link', { name: /passed later/ }).click()
    t.equal(page.url(), late.approval_url, 'a new one came by itself, and its link leads to it')
    const [file] = await Promise.all([page.waitForEvent('download'), page.goto(`${other.approval_url}/whole`).catch(() => {})])
    t.match(file.suggestedFilename(), other.handoff_id)
    await page.goto(other.approval_url)
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await page.getByText('You approved').waitFor()
    await page.goto(other.approval_url)
    await page.getByRole('link', { name: 'To the list' }).click()
    await page.getByText('One handoff waits').waitFor()
    await page.goto(`${at}${base}/approvals/nothing`)
    await page.getByRole('link', { name: 'To the list' }).click()
    await page.getByText('One handoff waits').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Approver key').waitFor()
    t.strictSame(faults.filter(fault => !/status of 40[0149]/.test(fault)), [], 'no fault in any page')
    await page.goto(`${at}${base}/docs`)
    await page.getByText('Pass a task to another agent').waitFor({ timeout: 60_000 })
    t.strictSame(asked.filter(path => !path.startsWith(`${base}/`)), [], 'nothing was asked for outside the path')
  }
})

t.test('two services below two paths of one host share no session', { skip }, async t => {
  const { at, first, second, ask } = await twoServices(t)
  await ask(first, 'of the first')
  await ask(second, 'of the second')
  const page = await first.visitor({ baseURL: at })
  await page.goto('/first/approvals')
  await signIn(page)
  await page.goto('/second/of-two/approvals')
  t.equal(await page.getByText('Your session has ended').count(), 0, 'the second one was sent no cookie')
  await signIn(page, secrets.approver2)
  await page.getByText('of the second').waitFor()
  await page.goto('/first/approvals')
  await page.getByText('of the first').waitFor()
  t.strictSame((await page.context().cookies()).map(({ name, path }) => [name, path]).sort(), [['handoff_session', '/first'], ['handoff_session', '/second/of-two']])
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('Approver key').waitFor()
  await page.goto('/second/of-two/approvals')
  await page.getByText('of the second').waitFor()
  t.strictSame((await page.context().cookies()).map(({ path }) => path), ['/second/of-two'], 'signing out of one leaves the other')
})

t.test('the cookie is bound to the path', async t => {
  const over = async (url: string) => {
    const { app } = await testApp(t, { BASE_URL: url })
    const signedIn = await app.inject(form('/handoff/approvals/sign-in', { key: secrets.approver, next: '/approvals/abc' }))
    const cookie = /^[^;]+/.exec(String(signedIn.headers['set-cookie']))![0]
    const signedOut = await app.inject(form('/handoff/approvals/sign-out', {}, { 'sec-fetch-site': 'same-origin', cookie }))
    t.strictSame([signedIn.headers.location, signedOut.headers.location], ['/handoff/approvals/abc', '/handoff/approvals/sign-in'])
    return [signedIn, signedOut].map(({ headers }) => String(headers['set-cookie']))
  }
  const [set, cleared] = await over('https://handoff.example/handoff')
  // Not __Host-, which requires Path=/.
  t.match(set, /^__Secure-handoff_session=[\w-]{43}; Max-Age=28800; Path=\/handoff; HttpOnly; Secure; SameSite=Strict$/)
  t.match(cleared, /^__Secure-handoff_session=; .*Path=\/handoff;/)
  t.match((await over('http://handoff.example/handoff'))[0], /^handoff_session=[\w-]{43}; Max-Age=28800; Path=\/handoff; HttpOnly; SameSite=Strict$/)
})

t.test('a link from another site, and a session that has ended, lead back to a page below the path', async t => {
  const { app } = await testApp(t, { BASE_URL: 'http://127.0.0.1/handoff' })
  for (const base of ['', '/handoff']) {
    const again = await app.inject({ url: `${base}/approvals/abc?x=1`, headers: { 'sec-fetch-site': 'cross-site' } })
    t.match(again.body, 'content="0; url&#61;/handoff/approvals/abc?x&#61;1"'.replace('url&#61;', 'url='))
    t.match(again.body, 'href="/handoff/approvals/abc?x&#61;1"')
    const ended = await app.inject({ url: `${base}/approvals/list?seen=x`, headers: { 'hx-request': 'true' } })
    t.equal(ended.headers['hx-redirect'], '/handoff/approvals/sign-in?next=%2Fapprovals&ended=1')
    const posted = await app.inject(form(`${base}/approvals/abc/approve`, {}))
    t.match(posted.body, /action="\/handoff\/approvals\/abc\/approve">\n(?:<input type="hidden"[^>]*>\n)*<input type="hidden" name="next" value="\/approvals\/abc">/)
    const foreign = await app.inject(form(`${base}/approvals/abc/approve`, {}, { origin: 'https://evil.example' }))
    t.strictSame([foreign.statusCode, /class="onward" href="([^"]+)"/.exec(foreign.body)?.[1]], [403, '/handoff/approvals/abc'])
    t.equal((await app.inject(form(`${base}/approvals/sign-in`, { key: 'x' }, { origin: 'http://127.0.0.1' }))).statusCode, 401, 'its own origin has no path')
  }
  for (const next of ['/handoff/approvals/abc', '//evil.example', '/handoff/../evil']) {
    const { headers } = await app.inject(form('/approvals/sign-in', { key: secrets.approver, next }))
    t.equal(headers.location, '/handoff/approvals', next)
  }
})
