import t from 'tap'
import { happenings } from '../../src/core/model.ts'
import { chatMessages, discordMessage, mailText, ntfyMessage, oneLine, slackMessage, teamsMessage, summaryOf, summaryOfMany, updateOf } from '../../src/webhooks/messages.ts'
import type { Summary } from '../../src/webhooks/messages.ts'

const id = 'AVHdDBR3Ox_T_H9gltuUjYVhg'
const base = 'https://handoff.example/base'
const data = {
  handoff_id: id, status: 'pending', to: 'reviewer', passed_by: 'writer', approval_url: `${base}/approvals/${id}`, expires_at: '2026-11-20T09:00:00.000Z'
}

/** Texts that would do something if any format took them for more than text. */
const hostile = [
  '<!channel> <@U1> <#C1> <https://evil.example|Approve> & &amp; *b* _i_ ~s~ :tada:', '@everyone @here <@1> <@&2> [Approve](https://evil.example) **b** ||s|| > q # h',
  '`` ``` `', 'a\r\nBcc: evil@example.com\r\n\r\nb\n.\n', '\u0000\u0007\u001b[31m\u009b', `{{DATE(2026-01-01T00:00:00Z)}} $${'{x}'} <at>a</at>`, '\u202eevil\u2066\u200f\u200b\ufeff\u2028\u2029',
  '\ud800 \udfff', 'x'.repeat(200), `a${'\u0301'.repeat(190)}`, '=?utf-8?B?QUJD?= =0D=0A', '<script>alert(1)</script>', '\\`a\\`', '﹫everyone ＠here'
]
const summary = (text: string): Summary => summaryOf('handoff.approval_requested', data, { name: 'Task', text, isCut: false }, base)

t.test('a message says what happened, of which inbox and agent, until when, and where', async t => {
  t.strictSame(summaryOf('handoff.approval_requested', data, null, base), {
    title: 'A person must approve a handoff',
    facts: [['Inbox', 'reviewer'], ['Passed by', 'writer'], ['Until', '2026-11-20 09:00 UTC'], ['Handoff', id]],
    quote: null,
    link: `${base}/approvals/${id}`,
  })
  const asked = { handoff_id: id, status: 'caught', passed_by: 'writer', caught_by: 'reader', ask_id: 'ask_1', of: 'person', answer_url: `${base}/approvals/${id}`, expires_at: data.expires_at }
  t.match(summaryOf('handoff.asked', asked, null, base), { title: 'An agent asks a question', facts: [['Passed by', 'writer'], ['Asked by', 'reader'], ['For', 'a person'], ['Until', /09:00 UTC$/], ['Handoff', id]], link: asked.answer_url })
  const { answer_url: _, ...ofPasser } = { ...asked, of: 'passer' }
  t.match(summaryOf('handoff.asked', ofPasser, null, base), { link: `${base}/console/handoffs/${id}` }, 'the console’s page where there is no other')
  const expired = { handoff_id: id, status: 'expired', passed_by: 'writer', caught_by: 'reader', attempt: 2, expired_because: 'stalled' }
  t.match(summaryOf('handoff.expired', expired, null, base).facts, [['Passed by', 'writer'], ['Caught by', 'reader'], ['Attempt', '2'], ['Because', 'its catcher sent no heartbeat'], ['Handoff', id]])
  t.match(summaryOf('webhook.test', { webhook_id: 'wh_1', reason: undefined }, null, base), { title: /test/, facts: [], link: `${base}/` })
  for (const name of happenings) t.notMatch(summaryOf(`handoff.${name}`, data, null, base).title, /^Something/, name)
  t.equal(summaryOf('handoff.passed', { handoff_id: id }, null, 'http://bücher.example').link, `http://xn--bcher-kva.example/console/handoffs/${id}`)
})

t.test('a summary says how many of what there were, where; an update what became of it, and who', async t => {
  t.strictSame(summaryOfMany([{ type: 'handoff.asked', inbox: 'box', count: 2 }, { type: 'handoff.approval_requested', inbox: null, count: 3 }], base), {
    title: '5 more within a minute', facts: [['An agent asks a question', '2 in the inbox box'], ['A person must approve a handoff', '3']], quote: null, link: `${base}/approvals`
  })
  t.match(summaryOfMany([{ type: 'handoff.asked', inbox: 'box', count: 2 }, { type: null, inbox: null, count: 3 }], base), { facts: [[], ['Others', '3']], link: `${base}/console` })
  t.strictSame(updateOf('handoff.rejected', data, 'kim', base), { title: 'A handoff was rejected', facts: [['By', 'kim'], ['Inbox', 'reviewer'], ['Handoff', id]], quote: null, link: `${base}/console/handoffs/${id}` })
  t.strictSame(updateOf('handoff.approved', { handoff_id: id }, null, base).facts, [['Handoff', id]], 'nobody knows any more')
  t.match(summaryOf('handoff.approval_requested', data, null, base, 'Asia/Tokyo').facts, [[], [], ['Until', '2026-11-20 18:00 Asia/Tokyo'], []])
  const most = summaryOfMany(Array.from({ length: 11 }, () => ({ type: 'handoff.approval_requested', inbox: 'x'.repeat(64), count: 10_000 })), base)
  for (const write of Object.values(chatMessages)) t.ok(write(most).body.length < 6000)
  t.ok(JSON.parse(discordMessage(most).body).content.length < 2000)
})

t.test('an agent’s text is one line in which nothing is hidden', async t => {
  t.equal(oneLine('a\r\nb\tc\u0000d\u202ee\u2028f  g\u00a0'), 'a b c d e f g')
  t.equal(oneLine(`a${'\u0301'.repeat(50)}b`), `a${'\u0301'.repeat(3)}b`)
  t.equal(oneLine('Zażółć 日本 עברית 👍'), 'Zażółć 日本 עברית 👍')
  for (const [at, text] of hostile.entries()) t.notMatch(oneLine(text), /[\p{C}\p{Zl}\p{Zp}\r\n]/u, `text ${at}`)
})

/** Without lone surrogates, which UTF-8 can’t have. */
function isWellFormed (text: string): boolean {
  return Buffer.from(text).toString() === text
}

t.test('every body is whole and short, whatever the text', async t => {
  for (const [at, text] of [...hostile, '𝕏'.repeat(200), '`'.repeat(200), '&<>'.repeat(66)].entries()) {
    for (const [format, write] of Object.entries(chatMessages)) {
      const { headers, body } = write(summary(text))
      if (format !== 'ntfy') JSON.parse(body)
      t.ok(isWellFormed(body) && Buffer.byteLength(body) < 4000, `${format}: text ${at}`)
      for (const value of Object.values(headers)) t.match(value, /^[ -~]+$/, 'header fields are ASCII, on one line')
    }
  }
})

t.test('Slack: text is plain, and what may have markup is escaped', async t => {
  for (const text of hostile) {
    const body = JSON.parse(slackMessage(summary(text)).body)
    t.strictSame(Object.keys(body), ['text', 'mrkdwn', 'blocks', 'unfurl_links', 'unfurl_media'])
    t.equal(body.text, `A person must approve a handoff: <${base}/approvals/${id}>`, 'nothing of the text')
    t.match(body, { mrkdwn: false, unfurl_links: false, unfurl_media: false })
    t.strictSame(body.blocks.map(({ text: { type } }: { text: { type: string } }) => type), ['plain_text', 'plain_text', 'mrkdwn'])
    t.strictSame(body.blocks[1], { type: 'section', text: { type: 'plain_text', text: `Task: ${oneLine(text)}`, emoji: false } })
    t.equal(body.blocks[2].text.text, `<${base}/approvals/${id}|Open it>`)
  }
  const odd = summaryOf('handoff.passed', { handoff_id: 'a>b|c&d' }, null, base)
  t.match(JSON.parse(slackMessage(odd).body).blocks[1].text.text, /handoffs\/a%3Eb%7Cc&amp;d\|Open it>$/)
  t.match(JSON.parse(slackMessage({ ...odd, title: '<!here> & more' }).body).text, /^&lt;!here&gt; &amp; more: <https/, 'and so would a title be')
})

t.test('Teams: a card without markup in it', async t => {
  for (const text of hostile) {
    const { type, attachments: [card, ...others] } = JSON.parse(teamsMessage(summary(text)).body)
    t.equal(type, 'message')
    t.strictSame(others, [])
    t.match(card, { contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content: { type: 'AdaptiveCard', version: '1.4' } })
    t.ok(card.content.body.every((block: { type: string, inlines: Array<{ type: string }> }) => block.type === 'RichTextBlock' && block.inlines.every(({ type }) => type === 'TextRun')))
    t.notMatch(JSON.stringify(card.content.body), /\{\{[A-Z]|\$\{/, 'no dates and no templates')
    t.equal(card.content.body.at(-1).inlines[0].text.replaceAll(/([{$]) (?=\{)/g, '$1'), `Task: ${oneLine(text)}`)
    t.strictSame(card.content.actions, [{ type: 'Action.OpenUrl', title: 'Open it', url: `${base}/approvals/${id}` }])
    t.notOk('msteams' in card.content, 'nobody is mentioned')
  }
})

t.test('Discord: text is code, nobody is mentioned, and nothing is previewed', async t => {
  for (const text of [...hostile, '`'.repeat(200)]) {
    const { content, ...more } = JSON.parse(discordMessage(summary(text)).body)
    t.strictSame(more, { allowed_mentions: { parse: [] }, flags: 4 })
    t.ok(content.length <= 2000)
    const lines = content.split('\n')
    t.equal(lines.length, 7)
    t.match(lines[5], /^`[^`]+`$/, 'one piece of code')
    t.equal(lines[5], `\`Task: ${oneLine(text).replaceAll('`', 'ˋ')}\``)
    t.equal(lines[6], `<${base}/approvals/${id}>`)
  }
})

t.test('ntfy: the text is in the body alone', async t => {
  for (const text of hostile) {
    const { headers, body } = ntfyMessage(summary(text))
    t.strictSame(headers, { 'content-type': 'text/plain; charset=utf-8', title: 'A person must approve a handoff', click: `${base}/approvals/${id}`, markdown: 'no' })
    t.equal(body, `Inbox: reviewer\nPassed by: writer\nUntil: 2026-11-20 09:00 UTC\nHandoff: ${id}\nTask: ${oneLine(text)}`)
  }
  t.ok(ntfyMessage(summaryOf('webhook.test', { webhook_id: 'wh_1' }, null, base)).body.length > 0, 'an empty one would say `triggered`')
})

t.test('mail: the subject has names alone', async t => {
  for (const text of hostile) {
    const { subject, text: said } = mailText(summary(text))
    t.equal(subject, 'A person must approve a handoff (inbox reviewer)')
    t.equal(said, `A person must approve a handoff\n\nInbox: reviewer\nPassed by: writer\nUntil: 2026-11-20 09:00 UTC\nHandoff: ${id}\n\nTask: ${oneLine(text)}\n\n${base}/approvals/${id}\n`)
  }
  t.equal(mailText(summaryOf('webhook.test', { webhook_id: 'wh_1' }, null, base)).subject, 'A test of this webhook: nothing is to be done')
  t.match(mailText(summaryOf('handoff.passed', { handoff_id: id, passed_by: 'writer' }, { name: 'Task', text: 'x', isCut: true }, base)), { subject: 'A handoff was passed (passed by writer)', text: /\nTask: x…\n/ })
})
