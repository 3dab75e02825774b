// Makes a clone ready to run: dependencies installed, dist/ built, each only when it isn't so already. npm runs it
// before start, test and bench. Only what Node itself has is used here: there may be nothing else yet.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, constants, mkdirSync, openSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const oldest = [20, 20]

/** Whether `node_modules` holds exactly what package-lock.json says, by the list that npm keeps there of what it has installed. */
export function isInstalled (root) {
  const wanted = packages(join(root, 'package-lock.json'))
  const present = packages(join(root, 'node_modules/.package-lock.json'))
  if (wanted === undefined || present === undefined) return false
  const { '': project, ...needed } = wanted
  // Optional ones may be for other machines. npm writes its list at the end, so an install that was killed has none.
  return Object.entries(needed).every(([path, entry]) => path in present ? isSame(entry, present[path]) : entry.optional) &&
    Object.keys(present).every((path) => path in needed)
}

function packages (file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages
  } catch {
    return undefined
  }
}

function isSame (a, b) {
  return a.version === b.version && a.resolved === b.resolved && a.integrity === b.integrity
}

/** Whether `dist` was built from just these sources, by these settings and these packages. */
export function isBuilt (root) {
  try {
    return readFileSync(join(root, 'dist/.sources'), 'utf8') === digest(root)
  } catch {
    return false
  }
}

/** Stands for all that a build depends on. */
export function digest (root) {
  const hash = createHash('sha256')
  const sources = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
  for (const file of [...sources.sort(), 'tsconfig.json', 'package-lock.json']) {
    const content = readFileSync(join(root, file))
    hash.update(`${file}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

/** Brings the clone at `root` up to date, with one line by `say` per step taken. Throws the output of a step that fails. */
export function bootstrap (root, say) {
  if (isInstalled(root) && isBuilt(root)) return
  lock(root) // held until this process ends; what another did while we waited needn't be done again
  if (!isInstalled(root)) {
    say('installing dependencies')
    install(root)
  }
  if (!isBuilt(root)) {
    say('building')
    build(root)
  }
}

/**
 * Waits until no other run is at work in this clone. flock(2)'s lock goes with the process that holds it, kill -9
 * included, so there are no stale ones (src/embedded/lock.ts says more). Where there is none, it goes on without.
 */
function lock (root) {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const exclusive = process.platform === 'darwin' ? 0x20 : 0 // O_EXLOCK
  const fd = openSync(join(root, '.cache/bootstrap.lock'), constants.O_RDWR | constants.O_CREAT | exclusive)
  if (process.platform === 'linux') spawnSync('flock', ['3'], { stdio: ['ignore', 'ignore', 'ignore', fd] })
}

function install (root) {
  const npm = process.env.npm_execpath
  const [command, first] = basename(npm ?? '').startsWith('npm-cli') ? [process.execPath, [npm]] : ['npm', []]
  // Where packages come from is the user's choice and stays; what this run of npm was told for its own script isn't ours.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_(lifecycle|package|command|config_(local_)?prefix)/.test(name)))
  step(command, [...first, 'ci', '--include=dev', '--no-audit', '--no-fund', '--global=false', '--dry-run=false', '--package-lock-only=false'], { cwd: root, env })
}

/** Compiled beside and then put in place, so a run that is killed leaves no half build and a deleted source no output. */
function build (root) {
  const made = join(root, '.cache/build')
  const sources = digest(root) // before: what changes meanwhile is built next time
  rmSync(made, { recursive: true, force: true })
  step(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json', '--outDir', made], { cwd: root })
  writeFileSync(join(made, '.sources'), sources)
  makeExecutable(root, made)
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  renameSync(made, join(root, 'dist'))
}

/** What package.json names as commands: the compiler makes plain files, and npx runs them as they are. */
function makeExecutable (root, made) {
  const { bin = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const file of Object.values(bin)) chmodSync(join(made, relative('dist', file)), 0o755)
}

function step (command, args, options) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { ...options, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 2 ** 26 })
  if (status !== 0) throw new Error(error?.message ?? `${stdout}${stderr}`.trimEnd())
}

function main () {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    throw new Error(`This needs Node.js ${oldest.join('.')} or newer, and this is ${process.versions.node}: see https://nodejs.org`)
  }
  bootstrap(dirname(dirname(fileURLToPath(import.meta.url))), (line) => console.log(line))
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    main()
  } catch (error) {
    console.error(error.message)
    process.exit(1)
  }
}
