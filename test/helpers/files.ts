import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import { testApp } from './app.ts'
import type { TestApp, Who } from './app.ts'
import { scratchDir } from './processes.ts'
import type { TestStoreOptions } from './redis.ts'
import { callerOf } from '../../src/core/model.ts'

/** The service with a directory of files, listening: bytes go over real connections. */
export interface FilesApp extends TestApp {
  directory: string
  url: string
  /** Makes an upload. @returns the answer */
  make (bytes: Buffer | string, more?: object, who?: Who, headers?: Record<string, string>): ReturnType<TestApp['call']>
  /** Makes one and sends its bytes. @returns its id */
  put (bytes: Buffer | string, more?: object, who?: Who): Promise<string>
}

export const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex')

export async function filesApp (t: Test, env: Record<string, string> = {}, options: TestStoreOptions & { directory?: string } = {}): Promise<FilesApp> {
  const directory = options.directory ?? await scratchDir(t)
  // A disk of a developer's may be fuller than a service's may be.
  const files = { spare: { share: 0, bytes: 0 }, ...options.files }
  const more = [{ caller: callerOf('default', 'rita', ['read', 'status']), secret: readerSecret }]
  const test = await testApp(t, { FILES_URL: String(pathToFileURL(directory)), ...env }, { ...options, files }, more)
  const url = await test.app.listen({ host: '127.0.0.1', port: 0 })
  const make: FilesApp['make'] = async (bytes, more = {}, who = 'alice', headers = {}) =>
    await test.call(who, 'POST', '/api/files', { name: 'a.bin', bytes: Buffer.byteLength(bytes), sha256: sha256(bytes), ...more }, headers)
  return {
    ...test,
    directory,
    url,
    make,
    async put (bytes, more, who) {
      const made = await make(bytes, more, who)
      if (made.statusCode !== 201) throw new Error(made.body)
      const { file_id: id, upload } = made.json()
      const { status } = await fetch(upload.url, { method: 'PUT', body: bytes, headers: upload.headers })
      if (status !== 204) throw new Error(`${status} at the upload`)
      return id
    }
  }
}

/** A disk of a megabyte, in memory. `skip`: why there is none, if this user may not mount one. */
export async function smallDisk (t: Test): Promise<{ directory: string, skip: string | false }> {
  const directory = join(await scratchDir(t), 'small')
  await mkdir(directory)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory], { stdio: 'ignore' })
    t.teardown(() => { execFileSync('umount', ['--lazy', directory]) })
    return { directory, skip: false }
  } catch {
    return { directory, skip: 'no disk can be mounted' }
  }
}

export const readerSecret = 'rita-secret-0123456789'
