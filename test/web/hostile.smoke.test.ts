import t from 'tap'
import { faultsOf, picture, skip, webApp } from '../helpers/browser.ts'
import { isWhole } from '../helpers/extent.ts'

/** Each does something if a page treats it as more than text. */
const attacks = [
  '<script>__xss=1</script>', '<img src=x onerror=__xss=1>', '"><script>__xss=1</script>', "'><img src=x onerror=__xss=1>",
  '<svg onload=__xss=1>', '<svg><script>__xss=1</script></svg>', '</title><script>__xss=1</script>', '</textarea><script>__xss=1</script>',
  '</script><script>__xss=1</script>', '<body onload=__xss=1>', '<iframe src="javascript:parent.__xss=1">', '<a href="javascript:__xss=1">x</a>',
  '[x](javascript:__xss=1)', '![x](x"onerror="__xss=1)', '<details open ontoggle=__xss=1>', '<input autofocus onfocus=__xss=1>',
  '<video><source onerror=__xss=1></video>', '<math><mtext><img src=x onerror=__xss=1></mtext></math>', '<style>*{display:none}</style>', '<link rel=stylesheet href=//x>',
  '<meta http-equiv=refresh content="0;url=//x">', '<base href=//x>', '<form action=//x><button>Approve</button></form>', '<div hx-get=/x hx-trigger=load>', '<div hx-on::load="__xss=1">',
  '<div data-hx-get="/approvals" data-hx-trigger="load">', '" autofocus onfocus="__xss=1', "' onmouseover='__xss=1", '` onclick=`__xss=1', 'javascript:__xss=1',
  '&lt;script&gt;__xss=1&lt;/script&gt;', '&#60;script&#62;__xss=1', '\\u003cscript\\u003e__xss=1', '<scr<script>ipt>__xss=1</script>', '<!--><img src=x onerror=__xss=1>-->',
  '<![CDATA[<script>__xss=1</script>]]>', '<xmp><img src=x onerror=__xss=1></xmp>', '<template><script>__xss=1</script></template>', '${__xss=1}{{__xss=1}}', // eslint-disable-line no-template-curly-in-string
  '<noscript><p title="</noscript><img src=x onerror=__xss=1>">', '<object data="data:text/html,<script>parent.__xss=1</script>">', '+ADw-script+AD4-__xss=1+ADw-/script+AD4-',
]

t.test('40 attacks in task, output, names and note are shown as text', { skip }, async t => {
  t.ok(attacks.length >= 40)
  const { ask, approver, call } = await webApp(t)
  const ids: string[] = []
  // In a page the six of them stand in different places: every sixth page has every attack once, all pages have each of them in each place.
  const fields = attacks.map((task, index) => {
    const [constraints, name, value, item, deep] = [1, 2, 3, 4, 5].map(further => attacks[(index + further) % attacks.length]!) as [string, string, string, string, string]
    return { task, constraints, name, value, item, deep }
  })
  for (const { task, constraints, name, value, item, deep } of fields) {
    ids.push(await ask({ task, constraints, output: { [name]: value, list: [item] }, context: { [name]: { deep } } }))
  }
  const page = await approver()
  const faults = faultsOf(page)
  let dialogs = 0
  page.on('dialog', dialog => { dialogs++; dialog.dismiss() })
  await page.reload()
  t.strictSame((await page.locator('.task').allInnerTexts()).sort(), [...attacks].sort(), 'the list')
  const shape = 'document.querySelectorAll("main *").length'
  const plain = await ask({ task: 'plain', constraints: 'plain', output: { a: 'b', list: ['c'] }, context: { a: { deep: 'b' } } })
  await page.goto(`/approvals/${plain}`)
  const elements = await page.evaluate(shape)
  for (let index = 0; index < attacks.length; index += isWhole ? 1 : 6) {
    const { task: attack, constraints, name, value, item, deep } = fields[index]!
    await page.goto(`/approvals/${ids[index]}`)
    t.strictSame(await page.locator('.text').allInnerTexts(), [attack, constraints])
    t.strictSame(await page.locator('.json .name').allInnerTexts(), [name, 'list', name, 'deep'].map(text => JSON.stringify(text)))
    t.strictSame(await page.locator('.json .string').allInnerTexts(), [value, item, deep].map(text => JSON.stringify(text)))
    t.equal(await page.evaluate(shape), elements, `no element of its own: ${attack}`)
    await page.getByLabel('Note').fill(attack)
    await page.getByRole('button', { name: index % 4 === 0 ? 'Approve' : 'Reject', exact: true }).click()
    await page.locator('.notice.good').waitFor()
    await page.goto(`/approvals/${ids[index]}`)
    t.equal(await page.locator('blockquote').innerText(), attack, 'the note')
    t.equal(await page.evaluate('typeof window.__xss'), 'undefined')
  }
  t.equal(dialogs, 0)
  t.strictSame(faults, [], 'the policy had nothing to refuse')
  t.equal((await call('alice', 'GET', `/api/status/${ids[0]}`)).json().approval.note, attacks[0])
})

/** Everything in the page is visible. */
const unseen = /[\u202a-\u202e\u2066-\u2069\u200b\u{e0041}]/u

t.test('the same attacks in texts about the end and in a schema are shown as text', { skip }, async t => {
  const { ask, approver, call } = await webApp(t)
  const page = await approver()
  const faults = faultsOf(page)
  const caught = async () => {
    const id = await ask({ task: 't' })
    await call('approver', 'POST', `/api/approve/${id}`)
    t.equal((await call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
    return id
  }
  const hidden = 'Pay \u202e000,1\u202c\u200b\u{e0041}\u0007'
  const shown = 'Pay ⟦U+202E⟧000,1⟦U+202C⟧⟦U+200B⟧⟦U+E0041⟧⟦U+0007⟧'
  for (const [text, seen] of [[attacks.join('\n'), attacks.join('\n')], [hidden, shown]] as const) {
    const [declined, failed, cancelled] = [await caught(), await caught(), await caught()]
    t.equal((await call('bob', 'POST', `/api/decline/${declined}`, { reason: text })).statusCode, 200)
    t.equal((await call('bob', 'POST', `/api/fail/${failed}`, { error: { message: text, data: { [text]: text } } })).statusCode, 200)
    t.equal((await call('alice', 'POST', `/api/cancel/${cancelled}`, { reason: text, force: true })).statusCode, 200)
    for (const [operation, id] of Object.entries({ declined, failed, cancelled })) {
      await page.goto(`/approvals/${id}`)
      t.equal(await page.locator('blockquote').innerText(), seen, operation)
      t.equal(await page.locator('.notice *:not(p, strong, time, blockquote, .invisible-char)').count(), 0, 'no element of its own')
      t.notMatch(await page.evaluate('document.body.innerText') as string, unseen)
    }
  }
  const texts = [...attacks, hidden]
  // JSON itself escapes control characters.
  const inJson = [...attacks.map(attack => JSON.stringify(attack)), JSON.stringify(shown.replace('⟦U+0007⟧', '\u0007'))]
  const schema = { properties: Object.fromEntries(texts.map(text => [text, { enum: [text] }])) }
  await page.goto(`/approvals/${await ask({ task: 't', result_schema: schema })}`)
  const region = page.getByRole('region', { name: 'Result schema' })
  for (const folded = region.locator('details:not([open]) > summary'); await folded.count() > 0;) await folded.first().click()
  t.strictSame(await region.locator('.string').allInnerTexts(), inJson)
  t.strictSame((await region.locator('.name').allInnerTexts()).filter(name => name !== '"enum"'), ['"properties"', ...inJson])
  t.equal(await region.locator('*:not(h2, p, div, details, summary, small, span)').count(), 0, 'no element of its own')
  t.notMatch(await page.evaluate('document.body.innerText') as string, unseen)
  t.equal(await page.evaluate('typeof window.__xss'), 'undefined')
  t.strictSame(faults, [])
})

t.test('invisible characters are shown', { skip }, async t => {
  const { ask, approver } = await webApp(t)
  const id = await ask({ task: 'Pay \u202e000,1\u202c to Bob\u200b\u{e0041}', output: { 'na\u2066me': 'va\ufefflue', escaped: 'x' }, constraints: 'זהירות' })
  const page = await approver()
  t.match(await page.locator('.task').innerText(), 'Pay ⟦U+202E⟧000,1⟦U+202C⟧ to Bob⟦U+200B⟧⟦U+E0041⟧')
  await page.goto(`/approvals/${id}`)
  t.equal(await page.locator('.text').first().innerText(), 'Pay ⟦U+202E⟧000,1⟦U+202C⟧ to Bob⟦U+200B⟧⟦U+E0041⟧')
  t.match(await page.locator('.json').innerText(), /"na⟦U\+2066⟧me": "va⟦U\+FEFF⟧lue"/)
  t.notMatch(await page.evaluate('document.body.innerText') as string, /[\u202a-\u202e\u2066-\u2069\u200b\ufeff]/)
  await picture(page, 'desk-light-invisible')
})

t.test('a payload of 1 MB leaves the page usable', { skip }, async t => {
  const { ask, approver, call } = await webApp(t)
  const big = {
    numbers: await ask({ task: 'numbers', output: { all: Array.from({ length: 300_000 }, (_, n) => n % 10) } }),
    invisible: await ask({ task: '\u200b'.repeat(300_000) }),
    deep: await ask({ task: 'deep', output: JSON.parse(`{"a":${'['.repeat(98)}"${'x'.repeat(900_000)}"${']'.repeat(98)}}`) }),
    schema: await ask({ task: 'word '.repeat(200_000), result_schema: { title: '\u200b'.repeat(5000), properties: { '\u202e': { enum: ['x'] } } } }),
    text: await ask({ task: 'word '.repeat(200_000) }),
  }
  const page = await approver()
  for (const [name, id] of Object.entries(big)) {
    await page.goto(`/approvals/${id}`)
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    t.match(await page.locator('.left-out').first().innerText(), /only the beginning: (\d+ KB|\d+ characters) more/, name)
    t.ok((await page.content()).length < 3_000_000)
  }
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download the whole' }).click()])
  let text = ''
  for await (const some of await file.createReadStream()) text += some
  t.equal(JSON.parse(text).task, 'word '.repeat(200_000))
  t.equal((await call('alice', 'GET', `/api/status/${big.text}`)).json().status, 'pending')
})
