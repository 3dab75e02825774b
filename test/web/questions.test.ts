import t from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { form, own, personWith, textOf, unescaped } from '../helpers/forms.ts'

/** The page on which people answer questions, over HTTP. */

const service = await testApp(t, { APPROVER_KEYS: `carol:${secrets.approver},bob:bobs-approver-key-01` })
const { call, caught } = service
const carol = await personWith(service, secrets.approver)

const ask = async (body: object = {}, more: object = {}) => {
  const id = await caught(more)
  const answer = await call('bob', 'POST', `/api/ask/${id}`, { question: 'Which one?', ...body })
  t.equal(answer.statusCode, 201, answer.body)
  return { id, askId: answer.json().ask_id as string, page: `/approvals/${id}`, read: async () => (await call('bob', 'GET', `/api/ask/${id}`)).json() }
}
/** The labels, kinds and names of the fields that the page draws. */
const drawn = (page: string) => [...page.matchAll(/<(input|textarea|select)[^>]*? name="([^"]+)"(?:[^>]*? value="([^"]*)")?/g)]
  .map(([, tag, name]) => `${tag} ${name}`).filter(one => !/ (ask_id|note)$/.test(one))

const draft = {
  type: 'object',
  required: ['account', 'text', 'count', 'sure'],
  properties: {
    account: { title: 'Which account', description: 'The one to charge.', enum: ['4711', '4712', 13, null] },
    short: { type: 'string', maxLength: 200 },
    text: { type: 'string', maxLength: 201, default: 'Dear\ncustomer' },
    count: { type: 'integer', minimum: 1, maximum: 9 },
    share: { type: ['number', 'null'] },
    sure: { type: 'boolean' },
    many: { enum: Array.from({ length: 20 }, (_, n) => `value ${n}`), default: 'value 7' },
    rows: { type: 'array', items: { type: 'object', required: ['a'] } },
    'a/b~c': { type: 'string', pattern: '^x', maxLength: 5 },
  },
}

t.test('a page links the handoff that its own is part of, where it can show that one', async t => {
  const passed = async (more: object) => (await call('alice', 'POST', '/api/pass', { task: 't', ...more })).json().handoff_id as string
  const [shown, unasked] = [await passed({ require_human: true }), await passed({})]
  await call('approver', 'POST', `/api/approve/${shown}`)
  for (const parent of [shown, unasked]) {
    t.equal((await call('alice', 'GET', `/api/catch/${parent}`)).statusCode, 200)
    const { body } = await carol(`/approvals/${await passed({ parent, require_human: true })}`)
    t.match(textOf(body), `Part of ${parent}`)
    t.equal(new RegExp(`<a [^>]*approvals/${parent}"`).test(body), parent === shown)
  }
})

t.test('a form is made of the schema, and what is sent is the answer', async t => {
  const { id, askId, page, read } = await ask({ schema: draft, details: { invoice: '2026-118', amount: 1.50 } }, { task: 'Pay the invoice.', constraints: 'secret rule', to: 'bob', labels: { run: '42' } })
  const { statusCode, body, headers } = await carol(page)
  t.equal(statusCode, 200)
  t.match(headers['content-security-policy'], /script-src 'self'/)
  t.notMatch(body, /<style|style=|<script>|\son\w+=/)
  const text = textOf(body)
  for (const what of ['Question from bob', 'Which one?', '"2026-118"', '1.5', 'Pay the invoice.', 'expires in 24 h', 'inbox bob', 'run:42', 'Which account', 'The one to charge.', 'A whole number. At least 1. At most 9.']) t.ok(text.includes(what), what)
  t.notOk(text.includes('secret rule'), 'of a handoff that no person had to approve, people see the task alone')
  t.strictSame(drawn(body), [
    ...Array(4).fill('input f0'), 'input f1', 'textarea f2', 'input f3', 'input f4', 'input f5', 'input f5', 'select f6', 'textarea f7', 'input f8'
  ])
  t.match(body, /<textarea id="f2" [^>]*required[^>]*>\nDear\ncustomer<\/textarea>/)
  t.match(body, /<option value="7" selected>value 7<\/option>/)
  const before = await read()
  t.equal(before.state, 'open', 'looking answers nothing')

  const good = { f0: '2', f1: '', f2: 'two\r\nlines', f3: '3', f4: '1e-3', f5: 'false', f6: '', f7: '[{"a": 1.0}]', f8: 'xy' }
  const sent = await carol(`${page}/answer`, { ask_id: askId, ...good, note: ' with care ' })
  t.match({ ...sent, location: sent.headers.location }, { statusCode: 303, location: `/approvals?answered=${id}` })
  const raw = (await call('bob', 'GET', `/api/ask/${id}`)).body
  t.ok(raw.includes('"answer":{"account":13,"text":"two\\nlines","count":3,"share":1e-3,"sure":false,"rows":[{"a": 1.0}],"a/b~c":"xy"}'), raw)
  t.match(await read(), { state: 'answered', answered_by: 'carol', note: 'with care' })
  t.match(textOf((await carol(`/approvals?answered=${id}`)).body), 'You answered Which one?')
  t.equal((await carol(`${page}/answer`, { ask_id: askId, ...good, note: 'with care' })).statusCode, 303, 'sent twice it is one answer')
  t.match(textOf((await carol(page)).body), /You answered this .* An answer is final\..*"account" : 13.*with care/)
})

t.test('what is wrong is said at its field, and what was typed is kept', async t => {
  const { askId, page, read } = await ask({ schema: draft })
  const send = (fields: Record<string, string>) => carol(`${page}/answer`, { ask_id: askId, ...fields })
  const unread = await send({ f1: 'kept <b>', f2: '', f3: 'three', f5: 'maybe', f0: '9', f7: '[1', f6: '99' })
  t.equal(unread.statusCode, 400)
  for (const [key, why] of [['f0', /Choose one/], ['f2', /needed/], ['f3', /not a number/], ['f5', /yes or no/], ['f7', /not JSON/], ['f6', /Choose one/]] as const) {
    t.match(new RegExp(`id="${key}-problem">(.*?)</p>`, 's').exec(unread.body)?.[1], why, key)
  }
  t.match(unread.body, /value="kept &#60;b&#62;"/)
  t.equal(unread.body.match(/ autofocus/g)?.length, 1)
  const fine = { f0: '0', f2: 'x', f3: '3', f5: 'true' }
  const refused = await send({ ...fine, f3: '12', f7: '[{"a":1},{}]', f8: 'no', note: 'a note' })
  t.equal(refused.statusCode, 422)
  for (const key of ['f3', 'f7', 'f8']) t.match(refused.body, `id="${key}-problem"`, key)
  t.match(refused.body, /id="f7-problem">\/1\/a: /, 'with the place in the value')
  for (const kept of ['value="12"', 'value="no"', '>\n[{&#34;a&#34;:1},{}]</textarea>', '>\na note</textarea>']) t.ok(refused.body.includes(kept), kept)
  const noted = await send({ ...fine, note: 'bell\x07' })
  t.match([noted.statusCode, noted.body], [400, /id="note-problem"/])
  t.equal((await read()).state, 'open')
  t.equal((await send(fine)).statusCode, 303)
  t.strictSame((await read()).answer, { account: '4711', text: 'x', count: 3, sure: true })
})

t.test('of a table, however large, each cell is in the answer', async t => {
  const letters = [...'abcdefghijkl']
  const properties = Object.fromEntries(letters.map(name => [name, { type: 'string', maxLength: 9 }]))
  const { page, read, askId } = await ask({ schema: { type: 'object', properties: { all: { type: 'array', items: { type: 'object', properties } } } } })
  const cells = Array.from({ length: 100 }, (_, row) => letters.map((name, at) => [`f0.${row}.f${at}`, `${name}${row}`] as const)).flat()
  t.equal((await carol(`${page}/answer`, { ask_id: askId, f0: '100', ...Object.fromEntries(cells) })).statusCode, 303)
  const { all } = (await read()).answer as { all: object[] }
  t.strictSame([all.length, all.at(-1)], [100, Object.fromEntries(letters.map(name => [name, `${name}99`]))])
})

t.test('without a schema, and with one that is no form, there is one field', async t => {
  const free = await ask()
  t.strictSame(drawn((await carol(free.page)).body), ['textarea f0'])
  t.equal((await carol(`${free.page}/answer`, { ask_id: free.askId, f0: '' })).statusCode, 400)
  t.equal((await carol(`${free.page}/answer`, { ask_id: free.askId, f0: 'The first.' })).statusCode, 303)
  t.strictSame((await free.read()).answer, { text: 'The first.' })
  const deep = (levels: number): object => levels === 0 ? {} : { items: deep(levels - 1) }
  const odd: object[] = [
    {}, { type: 'object' }, { properties: {} }, { oneOf: [{ required: ['a'] }, { required: ['b'] }], properties: { a: {}, b: {} } },
    { required: ['b'], properties: { a: { type: 'string' } } }, { properties: { a: {} }, patternProperties: { '^x': {} } },
    { properties: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`m${n}`, { type: 'string' }])) },
    { $defs: { a: deep(15) }, $ref: '#/$defs/a' },
  ]
  for (const schema of odd) {
    const { askId, page, read } = await ask({ schema })
    const { statusCode, body } = await carol(page)
    t.strictSame([statusCode, drawn(body)], [200, ['textarea whole']], JSON.stringify(schema).slice(0, 60))
    for (const wrong of ['', '[]', '1', '{"a":1', '{"a":1},"b":{}', `{"a":${'['.repeat(200)}${']'.repeat(200)}}`]) {
      const { statusCode, body } = await carol(`${page}/answer`, { ask_id: askId, whole: wrong })
      t.match([statusCode, body], [400, 'id="whole-problem"'], `${wrong.slice(0, 20)}: the form says what is wrong with it`)
    }
    t.equal((await read()).state, 'open')
  }
  const { askId, page, read } = await ask({ schema: odd[0]! })
  t.equal((await carol(`${page}/answer`, { ask_id: askId, whole: '{"__proto__": {"a": 1}, "big": 12345678901234567890}' })).statusCode, 303)
  t.equal((await read()).state, 'answered')
})

/** The question of a schema that is JSON text, its page, and what is sent. */
const askWritten = async (schema: string) => {
  const id = await caught()
  const asked = await service.app.inject({ method: 'POST', url: `/api/ask/${id}`, headers: { authorization: `Bearer ${secrets.bob}`, 'content-type': 'application/json' }, payload: `{"question":"?","schema":${schema}}` })
  t.equal(asked.statusCode, 201, asked.body)
  const { body } = await carol(`/approvals/${id}`)
  return {
    body,
    text: textOf(body),
    send: async (fields: Record<string, string>) => {
      const { statusCode, body } = await carol(`/approvals/${id}/answer`, { ask_id: asked.json().ask_id, ...fields })
      return statusCode === 303 ? /"answer":(.*?),"answered_at"/.exec((await call('bob', 'GET', `/api/ask/${id}`)).body)![1]! : `${statusCode} ${textOf(body)}`
    },
  }
}

t.test('a schema whose references lead far is read at once', { timeout: 30_000 }, async t => {
  const far = (of: (next: object) => object, depth: number) => JSON.stringify({
    properties: { a: { $ref: '#/$defs/d0' } },
    $defs: Object.fromEntries(Array.from({ length: depth + 1 }, (_, n) => [`d${n}`, n === depth ? { type: 'integer' } : of({ $ref: `#/$defs/d${n + 1}` })])),
  })
  const { text, send } = await askWritten(far(next => ({ anyOf: [next, { type: 'null' }] }), 200))
  t.match(text, 'A whole number.')
  t.equal(await send({ f0: '3' }), '{"a":3}')
  const both = await askWritten(far(next => ({ allOf: [{ title: 'x', ...next }], oneOf: [next, { type: 'null' }] }), 7))
  t.match(both.body, /name="f0"/)
})

t.test('fields of one definition have their names, and a text its line breaks', async t => {
  const { body, text, send } = await askWritten('{"properties":{"bill_to":{"$ref":"#/$defs/Place"},"ship_to":{"anyOf":[{"$ref":"#/$defs/Place"},{"type":"null"}]},"other":{"title":"Other","type":"string"},"sign":{"type":"string","maxLength":20,"default":"a\\nb"},"odd":{"type":"string","default":"\\r\\u0000\\ud83d"}},"$defs":{"Place":{"title":"Place","enum":["here","there"]}}}')
  for (const title of ['Place (bill_to)', 'Place (ship_to)', ' Other ']) t.match(text, title)
  t.match(body, '\na\nb</textarea>')
  t.match(body, '\n&#34;\\r\\u0000\\ud83d&#34;</textarea>', 'what a form would change is written as JSON')
  t.equal(await send({ f0: '', f1: '1', f2: '', f3: 'a\r\nb', f4: '"\\r\\u0000\\ud83d"' }), '{"ship_to":"there","sign":"a\\nb","odd":"\\r\\u0000\\ud83d"}')
  const strict = await askWritten('{"properties":{"a":{"type":"string","oneOf":[{"const":"x"},{"type":"null"}]}},"required":["a"]}')
  t.match(strict.text, 'a (needed)', 'null is refused by the type beside')
  t.match(await strict.send({ f0: '' }), /^400 .*This is needed/)
})

t.test('numbers are shown and sent as the schema has them', async t => {
  const { body, text, send } = await askWritten('{"properties":{"account":{"enum":[1253261109769874438,1253261109769874439, 1e400,"1e400"]},"order":{"type":"integer","default":9007199254740993,"minimum":9007199254740991,"examples":[1.0]},' +
    '"share":{"type":"number","maximum":1.0,"multipleOf":1e-30,"default":1.0},"which":{"oneOf":[{"const":1.0,"title":"One"},{"const":9007199254740993}]},"rows":{"type":"array","default":[1.0,9007199254740993],"items":{"maximum":1e400}}}}')
  for (const shown of ['1253261109769874438', '1253261109769874439', '1e400 "1e400"', 'At least 9007199254740991.', 'For example: 1.0', 'At most 1.0.', 'A multiple of 1e-30.', '9007199254740993', '"maximum" : 1e400']) t.ok(text.includes(shown), shown)
  for (const initial of ['name="f1" dir="auto" value="9007199254740993"', 'name="f2" dir="auto" value="1.0"', '\n[\n  1.0,\n  9007199254740993\n]</textarea>']) t.ok(body.includes(initial), initial)
  t.notMatch(body, /1253261109769874400|900719925474099[24]|Infinity|>null</)
  t.equal(await send({ f0: '1', f1: '9007199254740993', f2: '1.0', f3: '0', f4: '[1.0, 1e400]' }), '{"account":1253261109769874439,"order":9007199254740993,"share":1.0,"which":1.0,"rows":[1.0, 1e400]}')
  const refused = await askWritten('{"properties":{"order":{"type":"integer","minimum":9007199254740993},"one":{"const":1.0},"in":{"$ref":"#/$defs/d"}},"$defs":{"d":{"items":{"enum":[9007199254740993,1e400]}}}}')
  t.match(await refused.send({ f0: '5', f2: '[1]' }), /at least 9007199254740993 .*one of \[9007199254740993,1e400\]/, 'and what is wrong is said so too')
})

t.test('of a number’s text only the number is sent, and spaces alone are nothing', async t => {
  const { send } = await askWritten('{"properties":{"a":{"type":"number"},"b":{"type":"integer"},"c":{"type":"string","maxLength":9}}}')
  t.equal(await send({ f0: ' 1.50 ', f1: '  ', f2: ' ' }), '{"a":1.50,"c":" "}')
})

t.test('choices are of the schema’s type, up to a hundred; the first one may be written otherwise', async t => {
  const many = (count: number) => JSON.stringify({ enum: Array.from({ length: count }, (_, n) => `value ${n}`) })
  const { body, send } = await askWritten(`{"properties":{"whole":{"type":"integer","enum":[1,1.5,2.0]},"all":${many(100)},"more":${many(101)},"pre":{"enum":[0.5,1.0],"default":1},"odd":{"enum":[{"$ref":"nowhere"},{}]}}}`)
  t.strictSame(drawn(body).map(one => one.split(' ')[0]), ['input', 'input', 'input', 'select', 'textarea', 'input', 'input', 'input', 'textarea'])
  t.match(body, /name="f3" value="1" checked/, '1 is the choice 1.0')
  t.equal(await send({ f0: '1', f1: '99', f2: '', f3: '1', f4: '' }), '{"whole":2.0,"all":"value 99","pre":1.0}')
})

t.test('what libraries write for choices and optional values is drawn', async t => {
  const { body, text, send } = await askWritten(JSON.stringify({
    title: 'Order <b>',
    description: 'What to send.',
    type: 'object',
    required: ['size', 'colour', 'note', 'kind', 'old', 'code'],
    additionalProperties: false,
    $defs: { Colour: { title: 'Colour', description: 'Of the box.', enum: ['red', 'green'], type: 'string' }, Item: { type: 'object', properties: { n: { $ref: '#/$defs/Colour' } } } },
    properties: {
      size: { type: 'string', oneOf: [{ const: 's', title: 'Small' }, { const: 'l', title: 'Large', description: '60 cm' }] },
      colour: { $ref: '#/$defs/Colour' },
      second: { anyOf: [{ $ref: '#/$defs/Colour' }, { type: 'null' }], default: null, title: 'Another' },
      count: { anyOf: [{ type: 'integer', minimum: 1, exclusiveMaximum: 10 }, { type: 'null' }], default: null },
      note: { anyOf: [{ type: 'string', maxLength: 20 }, { type: 'null' }] },
      kind: { const: 'order', type: 'string', default: 'order' },
      old: { allOf: [{ $ref: '#/$defs/Colour' }], description: 'As before.', default: 'green' },
      code: { type: 'string', pattern: '^(?!0)[0-9]+$', minLength: 3, maxLength: 5, format: 'email', examples: ['123'] },
      maybe: { type: ['string', 'null'], enum: ['a', null] },
      either: { anyOf: [{ type: 'number' }, { type: 'string' }, { type: 'null' }], default: null },
      item: { $ref: '#/$defs/Item' },
      never: false,
      odd: { type: 'string', not: { const: 'x' } },
    }
  }))
  t.strictSame(drawn(body), ['input f0', 'input f0', 'input f1', 'input f1', 'input f2', 'input f2', 'input f2', 'input f3', 'input f4', 'input f5', 'input f6', 'input f6', 'input f7', 'input f8', 'input f8', 'input f8', 'textarea f9', 'textarea f10', 'textarea f11'])
  for (const shown of ['Order <b>', 'What to send.', 'Small', 'Large: 60 cm', 'Of the box.', 'Another', 'A whole number. At least 1. Less than 10.', 'As before.', 'At least 3 characters. At most 5 characters. It must match the pattern “^(?!0)[0-9]+$”. An e-mail address. For example: 123',
    '#/$defs/Item', '#/$defs/Colour', '"not"', '"anyOf"']) t.ok(text.includes(shown), shown)
  t.match(body, /name="f6" value="1" checked/)
  t.equal(await send({ f0: '1', f1: '0', f2: '', f3: '', f4: '', f5: '0', f6: '1', f7: '123', f8: '', f9: '', f10: '', f11: '' }), '{"size":"l","colour":"red","note":null,"kind":"order","old":"green","code":"123"}', 'what is optional and empty is left out')
  const whole = await askWritten('{"$defs":{"M":{"title":"Model","type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]}},"$ref":"#/$defs/M"}')
  t.strictSame(drawn(whole.body), ['input f0', 'input f0'])
  t.match(await whole.send({ f0: '' }), /^400 .*needed/)
  t.equal(await whole.send({ f0: 'true' }), '{"a":true}')
  // Of these, a choice would say too little or too much.
  for (const one of ['{"oneOf":[{"const":1},{"type":"string"}]}', '{"oneOf":[{"type":["null","string"]},{"type":"null"}]}', '{"type":"string","$ref":"#/$defs/n"}', '{"anyOf":[{"const":1,"not":{}},{"const":2}]}', '{"minLength":3}', '{"enum":[[1],2]}']) {
    const { body, text } = await askWritten(`{"$defs":{"n":{"type":"number"}},"properties":{"a":${one}}}`)
    t.strictSame(drawn(body), ['textarea f0'], one)
    t.match(text, 'What it must be, as JSON Schema', one)
  }
})

t.test('hostile names and texts are text', async t => {
  const evil = '"><script>alert(1)</script>\u202e'
  const names = ['__proto__', 'constructor', 'toString', evil, '', 'ask_id', 'note']
  const schema = `{"properties":{${names.map(name => `${JSON.stringify(name)}:{"type":"string","maxLength":9,"title":${JSON.stringify(name === '' ? '' : evil)}}`).join()},` +
    `"choice":{"enum":[${JSON.stringify(evil)},"b"]},"pre":{"type":"string","default":${JSON.stringify(evil)}},"title":{"default":{}}}}`
  const id = await caught({ task: evil })
  const asked = await service.app.inject({ method: 'POST', url: `/api/ask/${id}`, headers: { authorization: `Bearer ${secrets.bob}`, 'content-type': 'application/json' }, payload: `{"question":${JSON.stringify(evil)},"details":{"a":${JSON.stringify(evil)}},"schema":${schema}}` })
  t.equal(asked.statusCode, 201, asked.body)
  const page = `/approvals/${id}`
  const { statusCode, body } = await carol(page)
  t.equal(statusCode, 200)
  t.notMatch(body.replace(/<textarea.*?<\/textarea>/gs, ''), /<script>|\u202e/, 'but for what one can send back')
  t.match(body, /⟦U\+202E⟧/)
  const sent = await carol(`${page}/answer`, { ask_id: asked.json().ask_id, ...Object.fromEntries(names.map((_, n) => [`f${n}`, `v${n}`])) })
  t.equal(sent.statusCode, 303, textOf(sent.body))
  const raw = (await call('bob', 'GET', `/api/ask/${id}`)).body
  t.ok(raw.includes('"answer":{"__proto__":"v0","constructor":"v1","toString":"v2",'), raw)
})

t.test('an answer is for the question that was shown, and only while it is open', async t => {
  const { id, askId, page, read } = await ask()
  const refusals = async (status: number, why: RegExp, fields: Record<string, string> = { ask_id: askId }, person = carol) => {
    const { statusCode, body } = await person(`${page}/answer`, { f0: 'x', ...fields })
    t.match([statusCode, textOf(body)], [status, why], String(why))
  }
  for (const other of ['', 'other', '__proto__']) await refusals(409, /another question.*Which one\?/, { ask_id: other })
  t.equal((await read()).state, 'open')
  const bob = await personWith(service, 'bobs-approver-key-01')
  t.match(textOf((await bob(page)).body), 'You ask this yourself')
  await refusals(403, /You ask this yourself/, { ask_id: askId }, bob)
  await call('approver', 'POST', `/api/answer/${id}`, { ask_id: askId, answer: {} })
  await refusals(409, /You answered this/)
  await refusals(409, /You answered this/, { ask_id: askId, f0: '' })
  const next = (await call('bob', 'POST', `/api/ask/${id}`, { question: 'And then?' })).json()
  await refusals(409, /another question.*And then\?/)
  await call('bob', 'POST', `/api/done/${id}`, { output: {} })
  await refusals(409, /withdrawn.*the work ended/, { ask_id: next.ask_id })
  t.equal((await carol(page)).statusCode, 200)

  const now = Date.now()
  const late = await ask({ expires_in: 1 })
  await service.setClock(now + 5000)
  const over = await carol(`${late.page}/answer`, { ask_id: late.askId, f0: 'x' })
  t.match([over.statusCode, textOf(over.body)], [410, /Nobody answered this by/])
  await service.setClock(now)
})

t.test('of a large answer the page shows the beginning', async t => {
  const { id, askId, page } = await ask()
  const answer = { rows: Array.from({ length: 200_000 }, () => 1) }
  t.equal((await call('approver', 'POST', `/api/answer/${id}`, { ask_id: askId, answer })).statusCode, 200)
  const { body } = await carol(page)
  t.match(textOf(body), /You answered this .* the first 131,0\d\d of 200,000 items.* KB more are not shown/)
  t.ok(body.length < 3_000_000, 'so it costs others no time')
  t.match(await carol(wholeIn(body)), { statusCode: 200, body: JSON.stringify(answer) }, 'and leads to the whole')
})

const wholeIn = (body: string) => unescaped(/<a href="([^"]+)">Download the whole/.exec(body)?.[1] ?? '')

t.test('of a large task that nobody had to approve the page shows the beginning, and leads to the whole', async t => {
  const task = `# Many rows\n${'é row | of | a table\n'.repeat(15_000)}<b>the end</b>`
  const { page, id } = await ask({}, { task, context: { secret: 'not for people' } })
  const { body } = await carol(page)
  t.match(textOf(body), /What it is about: .* This is only the beginning\. The task has 15,002 lines, \d+ KB, and this page shows the first 256 KB\. Download the whole \./)
  const whole = await carol(wholeIn(body))
  t.match([whole.statusCode, whole.headers['content-type'], whole.headers['content-disposition']], [200, 'text/plain; charset=utf-8', `attachment; filename="task-${id}.txt"`])
  t.equal(whole.body, task)
  const plain = await service.pass({ task })
  t.equal((await carol(`/approvals/${plain}/task`)).statusCode, 409, 'what people aren’t asked about stays with agents')
})

t.test('of large details the page shows the beginning, and leads to the whole', async t => {
  const large = { list: Array.from({ length: 9_000 }, (_, n) => ({ n, text: 'x'.repeat(40) })), end: '<script>last</script>' }
  const { page } = await ask({ details: large })
  const { body } = await carol(page)
  t.match(textOf(body), /This is only the beginning\. There are 2 members, \d+ KB, and this page shows the first 256 KB \(list: 9,000 items\)\. Download the whole before you answer\..* Details .* KB more are not shown/)
  t.notMatch(body, '&#60;script&#62;last')
  const whole = await carol(wholeIn(body))
  t.match([whole.statusCode, whole.headers['content-type'], whole.headers['content-disposition']], [200, 'text/plain; charset=utf-8', /^attachment; filename="question-[\w-]{25}\.txt"$/])
  t.strictSame((JSON.parse(whole.body) as { details: object }).details, large)
  t.match(textOf((await carol(`${page}/inside`)).body), 'Download the whole', 'in the list too')
  t.notMatch((await carol((await ask({ details: { few: 1 } })).page)).body, 'Download the whole')
  const { id } = await ask({ of: 'passer', details: large })
  t.equal((await carol(`/approvals/${id}/question`)).statusCode, 409, 'what no person is asked stays with whom it is for')
})

t.test('what no person is asked has no page of a question', async t => {
  const passers = await ask({ of: 'passer' })
  t.equal((await carol(passers.page)).statusCode, 409)
  t.equal((await carol(`${passers.page}/answer`, { ask_id: passers.askId, f0: 'x' })).statusCode, 409)
  t.equal((await passers.read()).state, 'open')
  const plain = await caught()
  t.equal((await carol(`/approvals/${plain}`)).statusCode, 409)
  t.equal((await carol('/approvals/nothing/answer', { ask_id: 'x', f0: 'x' })).statusCode, 404)
  t.equal((await carol(`/approvals/${await service.pass({ require_human: true })}/answer`, { ask_id: 'x', f0: 'x' })).statusCode, 404, 'nor is there one where a decision is asked')
  const { page, askId, read } = await ask()
  for (const headers of [{}, { 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }]) {
    t.equal((await service.app.inject(form(`${page}/answer`, { ask_id: askId, f0: 'x' }, headers as Record<string, string>))).statusCode, 403, 'nor is a form from another site taken')
  }
  t.equal((await service.app.inject(form(`${page}/answer`, { ask_id: askId, f0: 'x' }, own))).statusCode, 401, 'nor one without a session')
  t.equal((await read()).state, 'open')
})

t.test('of a handoff that a person approved, the page shows all that was passed', async t => {
  const id = await service.pass({ task: 'Refund them.', constraints: 'At most €500.', require_human: true })
  await call('approver', 'POST', `/api/approve/${id}`)
  await call('bob', 'GET', `/api/catch/${id}`)
  const { ask_id: askId } = (await call('bob', 'POST', `/api/ask/${id}`, { question: 'All of them?' })).json()
  const page = textOf((await carol(`/approvals/${id}`)).body)
  for (const what of ['All of them?', 'You approved this', 'Refund them.', 'At most €500.']) t.ok(page.includes(what), what)
  t.equal((await carol(`/approvals/${id}/answer`, { ask_id: askId, f0: 'Yes.' })).statusCode, 303)
})

t.test('the list has a tab for questions, which comes first, and one for approvals', async t => {
  const service = await testApp(t)
  const { call, caught, pass, setClock } = service
  const carol = await personWith(service, secrets.approver)
  const start = Date.now() - 3600_000
  const ids: string[] = []
  for (let n = 0; n < 60; n++) {
    await setClock(start + n * 1000)
    const more = { to: n < 2 ? 'bob' : 'writer', labels: { run: String(n % 20) }, task: `task ${n}` }
    const isAsked = n % 3 === 0
    const id = isAsked ? await caught(more) : await pass({ ...more, require_human: true })
    if (isAsked) t.equal((await call('bob', 'POST', `/api/ask/${id}`, { question: `question ${n}` })).statusCode, 201)
    ids.push(id)
  }
  const rows = (body: string) => [...body.matchAll(/<a id="h-([^"]+)"/g)].map(([, id]) => id!)
  const rowsOf = async (query: string) => rows((await carol(`/approvals${query}`)).body)
  const [asked, others] = [ids.filter((_, n) => n % 3 === 0), ids.filter((_, n) => n % 3 !== 0)]
  const first = (await carol('/approvals')).body
  t.strictSame(rows(first), asked, 'questions come first')
  t.match(textOf(first), /Questions 20 Approvals 40 .*20 questions wait, the oldest first\..*question 0 question from bob waiting for.*inbox bob.*run:0/)
  t.strictSame(await rowsOf('?tab=approvals'), others)
  t.strictSame(await rowsOf('?inbox=bob'), ids.slice(0, 1))
  t.strictSame(await rowsOf('?tab=approvals&inbox=bob'), ids.slice(1, 2))
  t.strictSame(await rowsOf('?tab=approvals&labels=run%3A3&inbox=writer'), [ids[23], ids[43]])
  t.strictSame(await rowsOf('?labels=run%3A3&inbox=writer'), [ids[3]])
  t.match((await carol('/approvals?inbox=a%20b&labels=x')).body, /An inbox’s name.*Labels are written/)
  for (const query of ['tab=approvals&cursor=nothing', 'tab=questions&cursor=nothing', 'q=x&cursor=nothing']) t.equal((await carol(`/approvals?${query}`)).statusCode, 400, query)
  t.match(textOf((await carol('/approvals?tab=questions&inbox=nobody')).body), 'No question like this waits.')
  await setClock(start + 90_000)
  const late = await caught({ to: 'other', task: 'late' })
  await call('bob', 'POST', `/api/ask/${late}`, { question: 'Late?' })

  // A list that is narrowed keeps itself up to date too.
  for (const filter of ['inbox=other&amp;tab=questions', 'labels=run%3A99&amp;tab=questions']) {
    const page = (await carol(`/approvals?${filter.replaceAll('&amp;', '&')}`)).body
    const poll = new RegExp(`hx-get="(/approvals/list\\?${filter}&amp;seen=[\\w-]+)"`).exec(page)?.[1]?.replaceAll('&amp;', '&')
    t.ok(poll, filter)
    const polled = carol(poll!, undefined, { 'hx-request': 'true' })
    const others = await pass({ to: 'bob', require_human: true })
    const id = await caught({ to: 'other', labels: { run: '99' } })
    await call('bob', 'POST', `/api/ask/${id}`, { question: 'New?' })
    const { body } = await polled
    t.ok(rows(body).includes(id) && !rows(body).includes(others), `${filter}: the new one alone`)
    t.match(body, `/approvals/list?${filter}&amp;seen=`, 'and it goes on so')
    t.notMatch(body, 'id="decided"')
    for (const one of [id, others]) await call(one === id ? 'bob' : 'alice', 'POST', `/api/${one === id ? 'done' : 'cancel'}/${one}`, one === id ? { output: {} } : {})
  }
  await call('bob', 'POST', `/api/done/${late}`, { output: {} })

  await setClock(start + 100_000)
  for (const [what, change] of [
    ['a question', () => call('bob', 'POST', `/api/ask/${ids[0]}`, { question: 'Another?' })],
    ['an answer', async () => call('approver', 'POST', `/api/answer/${ids[0]}`, { ask_id: (await call('bob', 'GET', `/api/ask/${ids[0]}`)).json().ask_id, answer: {} })],
    ['the end of the work', () => call('bob', 'POST', `/api/done/${ids[3]}`, { output: {} })],
  ] as const) {
    if (what === 'a question') await call('approver', 'POST', `/api/answer/${ids[0]}`, { ask_id: (await call('bob', 'GET', `/api/ask/${ids[0]}`)).json().ask_id, answer: {} })
    const seen = /list\?tab=questions&amp;seen=([\w-]+)/.exec((await carol('/approvals')).body)![1]!
    const polled = carol(`/approvals/list?tab=questions&seen=${seen}`, undefined, { 'hx-request': 'true' })
    await change()
    t.not(/list\?tab=questions&amp;seen=([\w-]+)/.exec((await polled).body)![1], seen, `${what} is seen`)
  }
})

t.test('who is held to inboxes sees how many there are of those', async t => {
  const secret = 'helds-approver-key-01'
  const service = await testApp(t, {}, {}, [{ secret, caller: { ...callerOf('default', 'hella', ['approve', 'status']), inboxes: new Set(['mine']) } }])
  const { call, caught, pass } = service
  const mine = await pass({ to: 'mine', task: 'mine', require_human: true })
  for (let n = 0; n < 60; n++) await pass({ to: 'other', task: `other ${n}`, require_human: true })
  await call('bob', 'POST', `/api/ask/${await caught({ to: 'other' })}`, { question: 'Other?' })
  const [held, all] = [await personWith(service, secret), await personWith(service, secrets.approver)]
  const { body } = await held('/approvals')
  t.match(textOf(body), /Questions 0 Approvals 1 .*One handoff waits\. .*mine/)
  t.notMatch(body, /other|The next ones/i)
  t.match(textOf((await all('/approvals')).body), /Questions 1 Approvals 61 /)
  const seen = /list\?tab=approvals&amp;seen=([\w-]+)/.exec(body)![1]!
  const polled = held(`/approvals/list?tab=approvals&seen=${seen}`, undefined, { 'hx-request': 'true' })
  await pass({ to: 'other', task: 'other', require_human: true })
  const next = await pass({ to: 'mine', task: 'next', require_human: true })
  t.match(textOf((await polled).body), /mine .*next .*2 handoffs wait/, 'and hears of those alone')
  await call('approver', 'POST', `/api/approve/${mine}`)
  await call('approver', 'POST', `/api/approve/${next}`)
  const after = (await held('/approvals')).body
  t.match(textOf(after), /Approvals 0 .*No handoff waits\. .*Decided last .*(next|mine)/)
})
