import { cp, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { projectFiles } from './pages.ts'
import { projectRoot } from './service.ts'

/** Makes a copy like a fresh clone: tracked and new files, without installed packages or a build. */
export async function freshClone (directory: string): Promise<void> {
  for (const file of projectFiles()) {
    await mkdir(dirname(join(directory, file)), { recursive: true })
    await cp(join(projectRoot, file), join(directory, file)).catch(error => { if (error.code !== 'ENOENT') throw error })
  }
}
