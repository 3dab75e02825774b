import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A commit's service, built. */
export interface Build { commit: string, main: string }

const project = fileURLToPath(new URL('..', import.meta.url))

/**
 * Builds a commit beside this one, in `.cache/commits`, once. It gets this clone's packages, as hard links, if its lock file is the same;
 * otherwise its own are installed.
 * @param revision as git takes it: `HEAD~3`, `9096506`
 */
export async function buildOf (revision: string, say: (line: string) => void): Promise<Build> {
  const commit = run('git', ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`], project).trim()
  const place = join(project, '.cache/commits', commit)
  const build = { commit: commit.slice(0, 7), main: join(place, 'dist/main.js') }
  if (existsSync(place)) return build
  say(`building ${build.commit} in ${place}`)
  // It gets its name when it is whole: a build that broke off isn't taken for one.
  const making = `${place}.making`
  await rm(making, { recursive: true, force: true })
  await mkdir(making, { recursive: true })
  execFileSync('tar', ['-x'], { cwd: making, input: execFileSync('git', ['archive', commit], { cwd: project, maxBuffer: 2 ** 30 }) })
  const lock = (root: string) => readFileSync(join(root, 'package-lock.json'), 'utf8')
  if (lock(making) === lock(project)) await copyPackages(making)
  else run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], making)
  run('npm', ['run', 'build'], making)
  await rename(making, place)
  return build
}

async function copyPackages (root: string): Promise<void> {
  try {
    run('cp', ['-al', join(project, 'node_modules'), root], project)
  } catch {
    // Not every system's cp makes links.
    await cp(join(project, 'node_modules'), join(root, 'node_modules'), { recursive: true })
  }
}

/** @returns what it prints; its complaints go to stderr */
function run (program: string, args: readonly string[], cwd: string): string {
  return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}
