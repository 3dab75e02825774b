import t from 'tap'
import type { Page } from 'playwright-core'
import { devices, skip, webApp } from '../helpers/browser.ts'

const zoomed = {
  'desk at 200 %': { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 },
  'phone at 200 %': { viewport: { width: 195, height: 422 }, deviceScaleFactor: 4, hasTouch: true, isMobile: true },
}

/** Folded parts and links to tab through, and more text than fits any screen. */
const long = {
  task: 'Look at every line.\n'.repeat(500),
  output: Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`part${n}`, 'word '.repeat(1000)])),
  context: { lines: Array.from({ length: 150 }, (_, n) => `line ${n}`) },
}

/** A schema of the maximum length, with all terms. */
const terms = {
  task: 'short',
  work_within: 60,
  heartbeat_within: 30,
  delay: 60,
  max_attempts: 3,
  result_schema: { properties: Object.fromEntries(Array.from({ length: 700 }, (_, n) => [`member${n}`, {}])) },
}

/** The form's elements that are covered or out of view: for the others, the element at their centre is themselves. */
const hidden = async (page: Page) => await page.evaluate(`[...document.querySelectorAll('#note, .decision button')].filter(one => {
  const { left, top, right, bottom } = one.getBoundingClientRect()
  const here = document.elementFromPoint((left + right) / 2, (top + bottom) / 2)
  return top < 0 || bottom > innerHeight || left < 0 || right > innerWidth || here !== one
}).map(one => one.id || one.innerText)`) as string[]

/** The focused element, if the form covers it. */
const covered = `(() => {
  const one = document.activeElement, form = document.querySelector('.decision')
  if (form.contains(one) || one === document.body) return null
  const { bottom } = one.getBoundingClientRect()
  return bottom > form.getBoundingClientRect().top + 1 ? one.outerHTML.slice(0, 80) : null
})()`

t.test('note and buttons are visible without scrolling', { skip }, async t => {
  const { ask, approver } = await webApp(t)
  const ids = { short: await ask({ task: 'short' }), long: await ask(long), terms: await ask(terms) }
  for (const [device, options] of Object.entries({ ...devices, ...zoomed })) {
    const page = await approver(options)
    for (const [name, id] of Object.entries(ids)) {
      await page.goto(`/approvals/${id}`)
      t.strictSame(await hidden(page), [], `${device}, ${name}, as it comes`)
      if (device === 'phone') t.ok(await page.evaluate("document.querySelector('.decision').offsetHeight <= innerHeight / 10"), `${name}: a tenth of a phone at most`)
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight / 2)')
      t.strictSame(await hidden(page), [], `${device}, ${name}, in the middle`)
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
      t.strictSame(await hidden(page), [], `${device}, ${name}, at the end`)
      t.ok(await page.evaluate("[...document.querySelectorAll('section')].pop().getBoundingClientRect().bottom <= document.querySelector('.decision').getBoundingClientRect().top"), 'and nothing lies under them there')
      await page.evaluate('scrollTo(0, 0)')
      await page.getByRole('button', { name: 'Reject', exact: true }).click()
      await page.getByText('say why').waitFor()
      t.strictSame(await hidden(page), [], `${device}, ${name}, with what is wrong`)
      t.ok(await page.locator('#problem').isVisible())
      t.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, 'nothing hangs out')
      await page.getByLabel('Note').fill('a long note\n'.repeat(60))
      t.strictSame(await hidden(page), [], `${device}, ${name}, with a long note`)
      t.ok(await page.evaluate('document.querySelector(".decision").offsetHeight') as number <= options.viewport.height * 0.7, 'there is room to read beside it')
    }
    await page.goto(`/approvals/${ids.long}`)
    const way: string[] = []
    for (let presses = 0; presses < 60 && way.at(-1) !== 'Reject'; presses++) {
      await page.keyboard.press('Tab')
      t.equal(await page.evaluate(covered), null, 'what has the keyboard is not under the form')
      way.push(await page.evaluate('document.activeElement.id || document.activeElement.innerText') as string)
    }
    t.strictSame(way.slice(-3), ['note', 'Approve', 'Reject'])
    t.ok(way.length > 11, 'and the folded parts come before')
    await page.context().close()
  }
})

t.test('from the keyboard, the decision is one step away however long the content is', { skip }, async t => {
  const { ask, approver } = await webApp(t)
  const page = await approver()
  await page.goto(`/approvals/${await ask(long)}`)
  for (let presses = 0; presses < 5 && await page.evaluate('document.activeElement.innerText') !== 'Skip to the decision'; presses++) await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.keyboard.type('typed')
  t.equal(await page.getByLabel('Note').inputValue(), 'typed')
})
