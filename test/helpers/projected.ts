import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { scratchDir } from './processes.ts'

/** A file as Kubernetes projects a token: a link into a folder that is a link too, and that one is replaced whole. */
export interface ProjectedFile {
  path: string
  /** Puts another text in its place, in one step. */
  rotate (text: string): Promise<void>
}

export async function projectedFile (t: Test, text: string): Promise<ProjectedFile> {
  const folder = await scratchDir(t)
  const path = join(folder, 'token')
  let version = 0
  const rotate = async (text: string) => {
    const before = `..${version++}`
    await mkdir(join(folder, `..${version}`))
    await writeFile(join(folder, `..${version}`, 'token'), `${text}\n`)
    await symlink(`..${version}`, join(folder, '..data_tmp'))
    await rename(join(folder, '..data_tmp'), join(folder, '..data'))
    await rm(join(folder, before), { recursive: true, force: true })
  }
  await rotate(text)
  await symlink('..data/token', path)
  return { path, rotate }
}
