import fc from 'fast-check'
import t from 'tap'
import { markdownView } from '../../src/web/markdown.ts'

const entities: Record<string, string> = { quot: '"', amp: '&', '#39': "'", '#x27': "'", lt: '<', gt: '>', '#x2F': '/', '#x60': '`', '#x3D': '=' }
/** What a browser shows of it. */
const shown = (html: string) => html.replace(/<[^>]*>/g, '').replace(/&(#?\w+);/g, (whole, name: string) =>
  entities[name] ?? (/^#\d+$/.test(name) ? String.fromCodePoint(Number(name.slice(1))) : whole))
const tagsOf = (html: string) => [...html.matchAll(/<([a-z]\w*)/g)].map(([, name]) => name!)
const linksOf = (html: string) => [...html.matchAll(/<a href="([^"]*)" ([^>]*)>/g)].map(([, href, rest]) => [shown(href!), rest])

t.test('headings, lists, emphasis, code and quotes are shown as such', async t => {
  const view = markdownView('# One\n\n### Two\ntext *em* and **strong** `co*de*`\nsecond line\n\n- a\n- b\n  - c\n\n3. x\n9. y\n\n> q\n> *r*\n\n```sh\nls -la *\n```\n\n    in code\n\nLast\n====')
  const tags = new Set(tagsOf(view))
  for (const tag of ['h3', 'h4', 'em', 'strong', 'code', 'ul', 'ol', 'li', 'blockquote', 'pre']) t.ok(tags.has(tag), tag)
  t.notOk(tags.has('h1') || tags.has('h2'), 'below the page’s own')
  t.match(shown(view), /text em and strong co\*de\*\nsecond line/, 'lines stay lines')
  t.match(shown(view), /3\. x9\. y/, 'numbers are those that were written')
  t.match(shown(view), /sh\s*ls -la \*/, 'what stands behind a fence too')
})

t.test('what isn’t shown as such stands as text', async t => {
  for (const text of [
    '<script>alert(1)</script>', '<!-- approve everything -->', '<!-- two\nlines -->', '![alt](https://e.com/x.png "t")', '[x]: https://e.com "a title"', '[x][y]',
    '<b onclick=alert(1)>', '&amp; &#x202e;', '| a | b |\n|---|---|\n| 1 | 2 |', '~~gone~~', '2 * 3 * 4', 'snake_case_name', '**open', '[open', '`open', '- [ ] task', '[a](b', '<http://', '1986\\. A year'.replace('\\', ''),
  ]) {
    t.equal(shown(markdownView(text)).replace(/^• ?/, ''), text.replace(/^- /, ''), text)
  }
  t.strictSame([...new Set(tagsOf(markdownView('<img src=x onerror=alert(1)>\n\n<svg/onload=alert(1)>')))], ['p'])
  t.match(shown(markdownView('[a](https://e.com/ "Pay 100")')), 'Pay 100', 'a title')
})

t.test('only https, http and mailto without a user are followed, and each shows its ASCII host', async t => {
  const followed: Array<[markdown: string, href: string, host: string]> = [
    ['[a](https://example.com/x?y=1)', 'https://example.com/x?y=1', 'example.com'], ['[a](http://example.com)', 'http://example.com/', 'example.com'],
    ['[a](https://exämple.com/)', 'https://xn--exmple-cua.com/', 'xn--exmple-cua.com'], ['[bank.com](https://еvil.com)', 'https://xn--vil-qdd.com/', 'xn--vil-qdd.com'], ['<https://example.com/>', 'https://example.com/', 'example.com'],
    ['[m](mailto:kim@exämple.com)', 'mailto:kim@xn--exmple-cua.com', 'xn--exmple-cua.com'], ['[a](<https://example.com/(x)>)', 'https://example.com/(x)', 'example.com'], ['[**b**](HTTPS://EXAMPLE.com:8443/)', 'https://example.com:8443/', 'example.com:8443'],
  ]
  for (const [markdown, href, host] of followed) {
    const view = markdownView(markdown)
    t.match(linksOf(view), [[href, /rel="noreferrer/]], markdown)
    t.ok(shown(view).includes(host), `${markdown} shows ${host}`)
  }
  for (const address of [
    'javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd', '//e.com/x', '/approvals', 'e.com', 'https:/e.com', 'https:e.com', 'https://u@e.com/', 'https://u:p@e.com/', 'https://bank.com@evil.com',
    'https://@e.com', 'https://bank.com\\@evil.com', 'https://e.com/\u202ex', 'https://e\u200b.com', 'blob:https://e.com/x', 'ftp://e.com/', 'mailto:', 'mailto:x', 'java\nscript:x', 'https://', 'https://[::1', 'mailto:a@b@c',
  ]) {
    const view = markdownView(`[pay **here**](${address})`)
    t.strictSame(linksOf(view), [], address)
    t.match(shown(view), '[pay', 'and it stands as it was written')
  }
})

/** Words in order: markup may go, nothing that is said may. */
const wordsOf = (text: string): string[] => text.match(/[\p{L}\p{N}]+/gu) ?? []

t.test('nothing is dropped, whatever it is nested in, and tags are closed in order', async t => {
  const piece = fc.constantFrom(
    '*', '**', '***', '_', '__', '`', '``', '```', '[', ']', '(', ')', '](https://e.com)', '](javascript:x)', '![', '<', '>', '<!--', '-->', '\\', '# ', '> ', '- ', '1. ', '    ', '\n', '\n\n', '\t', ' ', '|', '---', '===', '~~~', '"', 'word', 'x9', '\u202e', '<https://e.com>', '<b>'
  )
  fc.assert(fc.property(fc.array(piece, { maxLength: 60 }), pieces => {
    const text = pieces.map((one, at) => one === 'word' ? `word${at}` : one).join('')
    const view = markdownView(text)
    const seen = wordsOf(shown(view.replace(/<[^>]*>/g, '\0')))
    let at = 0
    for (const word of wordsOf(text)) {
      at = seen.indexOf(word, at) + 1
      if (at === 0) return false
    }
    const open: string[] = []
    for (const [, slash, name] of view.matchAll(/<(\/?)([a-z]\w*)[^>]*>/g)) {
      if (name === 'hr') continue
      if (slash === '') open.push(name!)
      else if (open.pop() !== name) return false
    }
    return open.length === 0 && !view.includes('\u202e')
  }), { numRuns: 1000 })
})

t.test('a hostile text of 100 KB takes no longer than its length', async t => {
  for (const unit of [
    '[', '](', '[a](', '[](https://e.com)', '`', '`a``', '*a', '**a *b ', '_a_', '<', '<!--', '<a', '> ', '- ', '- \n', '1. \n', '\n', '#', '# #   ', '\\', '|\n', '    \n', '```\n', '[a](x "', '*a**b***c', '![', '-\n\n', '- a\n\n', '\u202e', '( ', '&', ']',
  ]) {
    const text = unit.repeat(100_000 / unit.length)
    const from = process.cpuUsage()
    const view = markdownView(text)
    const { user } = process.cpuUsage(from)
    // Quadratic ones take minutes.
    t.ok(user < 3_000_000 && typeof view === 'string', `${JSON.stringify(unit)} ${Math.round(user / 1000)} ms`)
  }
  const columns = Array.from({ length: 1000 }, (_, n) => `c${n}`)
  const table = ['| ' + columns.join(' | ') + ' |', '|---'.repeat(1000) + '|', '| ' + columns.join(' | ') + ' |'].join('\n')
  t.ok(shown(markdownView(table)).replace(/\s/g, '').includes(table.replace(/\s/g, '')), 'a table of 1,000 columns stands as text')
  t.notMatch(markdownView(table), /<t[dhr]/)
  t.equal(linksOf(markdownView(Array.from({ length: 10_000 }, (_, n) => `[l${n}](https://e.com/${n})`).join(' '))).length, 10_000)
})
