import { existsSync, mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import root from 'tap'
import type { Test } from 'tap'
import type { ApiKey } from '../../src/core/model.ts'
import { secrets, testApp } from './app.ts'
import type { TestApp } from './app.ts'
import { listen } from './wire.ts'

const places = [process.env.CHROMIUM_BIN, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const found = places.find(path => path !== undefined && existsSync(path))
/** tap's `skip` option for tests that need a browser: the reason, or false. */
export const skip = found === undefined ? 'no Chromium here: apt-get install chromium, or set CHROMIUM_BIN' : false

/** Kept after the run. */
const screenshots = fileURLToPath(new URL('../../.cache/screenshots/', import.meta.url))

/** The devices that people use. */
export const devices = {
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
  desk: { viewport: { width: 1280, height: 800 } },
} as const satisfies Record<string, BrowserContextOptions>

export interface WebApp extends TestApp {
  /** The service's address. */
  address: string
  /** Passes a handoff that waits for a person. @returns its id */
  ask (body: Record<string, unknown>): Promise<string>
  /** Opens a browser for a person who isn't signed in. */
  visitor (options?: BrowserContextOptions): Promise<Page>
  /** The same, signed in, with the list open. */
  approver (options?: BrowserContextOptions, key?: string): Promise<Page>
}

/** The service where a browser finds it, and people who use it. */
export async function webApp (t: Test, env: Record<string, string> = {}, args: string[] = [], keys: readonly ApiKey[] = []): Promise<WebApp> {
  const service = await testApp(t, env, {}, keys)
  const port = await listen(service.app)
  const address = `http://127.0.0.1:${port}`
  const browser = await browserWith(args)
  const visitor = async (options: BrowserContextOptions = devices.desk) => {
    const context = await browser.newContext({ baseURL: address, ...options })
    // Far below the test's own time-out, so that the failure names what didn't appear.
    context.setDefaultTimeout(60_000)
    t.teardown(() => context.close())
    return context.newPage()
  }
  return {
    ...service,
    address,
    visitor,
    ask: body => service.pass({ require_human: true, ...body }),
    async approver (options, key = secrets.approver) {
      const page = await visitor(options)
      await page.goto('/approvals')
      await signIn(page, key)
      return page
    },
  }
}

/** Those that run, by their arguments: one serves all tests of a file, since people in different contexts share nothing. */
const browsers = new Map<string, Promise<Browser>>()
root.teardown(async () => { for (const browser of browsers.values()) await (await browser).close() })

function browserWith (args: string[]): Promise<Browser> {
  const key = args.join(' ')
  const running = browsers.get(key) ?? launch(args)
  browsers.set(key, running)
  return running
}

function launch (args: string[]): Promise<Browser> {
  return chromium.launch({
    executablePath: found!,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', ...args],
  })
}

/** Signs in as a person does: types the key, presses Enter. */
export async function signIn (page: Page, key: string = secrets.approver): Promise<void> {
  await page.getByLabel('Approver key').fill(key)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
}

/** Keeps an open page from hearing that its handoff is over: its buttons stay, and its press comes too late. */
export async function hearsNothing (page: Page): Promise<void> {
  await page.route('**/standing*', route => route.abort())
}

/** Saves a screenshot of the whole page under .cache/screenshots. */
export async function picture (page: Page, name: string): Promise<void> {
  mkdirSync(screenshots, { recursive: true })
  await page.screenshot({ path: `${screenshots}${name}.png`, fullPage: true })
}

/** Errors of the page's own scripts, and violations of its content security policy. */
export function faultsOf (page: Page): string[] {
  const faults: string[] = []
  page.on('pageerror', error => { faults.push(error.message) })
  page.on('console', message => { if (message.type() === 'error') faults.push(message.text()) })
  return faults
}
