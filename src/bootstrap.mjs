// Makes a clone ready to run: packages installed, dist/ built, each only when it isn't so already. npm runs it before
// start, with --all before test and bench, and with --types too before a check of types, which needs no dist/. Only
// what Node itself has is used here: there may be nothing else yet.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync, constants, existsSync, mkdirSync, openSync, readdirSync, readFileSync, readlinkSync, realpathSync,
  renameSync, rmSync, symlinkSync, writeFileSync
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const oldest = [20, 20]

/** What a build makes among the sources, of other sources: the clients' types. */
const generated = [
  'src/clients/typescript/api.ts', 'src/clients/python/agent_handoff/types.py',
  'src/clients/python/agent_handoff/types.pyi'
]

/**
 * Whether `node_modules` holds what package-lock.json says, by the list that npm keeps there of what it has installed,
 * and nothing else.
 * @param all the packages of tests and benches too: starting needs neither those nor the optional ones
 */
export function isInstalled (root, all) {
  const wanted = packages(join(root, 'package-lock.json'))
  const present = packages(join(root, 'node_modules/.package-lock.json'))
  if (wanted === undefined || present === undefined) return false
  const { '': project, ...needed } = wanted
  // Optional ones may be for other machines. npm writes its list at the end, so an install that was killed has none.
  const mayBeMissing = ({ dev, optional, devOptional }) => optional || (!all && (dev || devOptional))
  return Object.entries(needed).every(([path, entry]) =>
    path in present ? isSame(entry, present[path]) : mayBeMissing(entry)) &&
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
function isBuilt (root) {
  try {
    return readFileSync(join(root, 'dist/.sources'), 'utf8') === sourcesDigest(root) + generatedDigest(root)
  } catch {
    return false
  }
}

/** Stands for all that a build depends on. */
function sourcesDigest (root) {
  const settings = ['tsconfig.json', 'package-lock.json']
  return digest(root, [...sourcesOf(root), ...scriptsOf(root), ...clientsOf(root), ...settings])
}

/** Stands for what a build made among the sources: git, or a hand, may have changed or removed it since. */
function generatedDigest (root) {
  return digest(root, generated.filter((file) => existsSync(join(root, file))))
}

function digest (root, files) {
  const hash = createHash('sha256')
  for (const file of files) {
    const content = readFileSync(join(root, file))
    hash.update(`${file}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

/** Their paths from `root`. The client package's own build has declarations, which aren't sources. */
function sourcesOf (root) {
  return filesIn(root, 'src').filter((file) => /(?<!\.d)\.ts$/.test(file) && !generated.includes(file))
}

/** What dist/lua is made of. */
function scriptsOf (root) {
  return existsSync(join(root, 'lua')) ? filesIn(root, 'lua') : []
}

/** What dist/clients is made of besides: Python's, and what describes and makes the packages. */
function clientsOf (root) {
  return existsSync(join(root, 'src/clients')) ? filesIn(root, 'src/clients').filter(isPacked) : []
}

function isPacked (file) {
  return /\.(pyi?|typed|json|md|mjs)$/.test(file) && !generated.includes(file) &&
    !/\/(dist|node_modules|tests|__pycache__|\.\w+)\//.test(file)
}

function filesIn (root, folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name))).sort()
}

/**
 * Brings the clone at `root` up to date, with one line by `say` per step taken. Throws what a step that fails says.
 * @param folders those below `root` with a manifest of their own, whose packages are wanted too
 * @param make makes what isn't built
 */
async function bootstrap (root, all, say, folders = [], make = build) {
  linkCommand(root)
  const missing = () => folders.filter((folder) => !isInstalled(join(root, folder), true))
  if (isInstalled(root, all) && missing().length === 0 && isBuilt(root)) return
  lock(root) // held until this process ends; what another did while we waited needn't be done again
  if (!isInstalled(root, all)) {
    say('installing dependencies')
    await npmCi(root, ...all ? ['--include=dev'] : leftOut(root))
    linkCommand(root)
  }
  for (const folder of missing()) {
    say(`installing what ${folder} needs`)
    await npmCi(join(root, folder), '--include=dev')
  }
  if (!isBuilt(root)) {
    say(make === build ? 'building' : 'making the clients’ types')
    await make(root)
  }
}

/** How long nothing is said of a step that goes on, in milliseconds: on a terminal, and elsewhere. */
const [soon, seldom] = [200, 5000]

/**
 * Says how far a step is: on a terminal in one line that is written anew, elsewhere in further lines.
 * @returns what tells it, with nothing at the end
 */
function stepProgress (step) {
  const { isTTY: isTerminal = false } = process.stdout
  let saidAt = Date.now()
  let isShown = false
  return (how) => {
    const clear = isShown ? '\r\u001b[2K' : ''
    if (how === undefined) return process.stdout.write(clear)
    if (Date.now() - saidAt < (isTerminal ? soon : seldom)) return
    saidAt = Date.now()
    isShown = isTerminal
    process.stdout.write(isTerminal ? `${clear}${step}: ${how}` : `${step}: ${how}\n`)
  }
}

/**
 * `npx handoff` starts what node_modules/.bin has at once. Else npx looks for who has the command, and installs that:
 * this takes three times as long as the command itself.
 */
function linkCommand (root) {
  const link = join(root, 'node_modules/.bin/handoff')
  const target = '../../dist/cli/main.js'
  if (!existsSync(dirname(link)) || !existsSync(join(root, 'src/cli/main.ts')) || targetOf(link) === target) return
  rmSync(link, { force: true })
  symlinkSync(target, link)
}

function targetOf (link) {
  try {
    return readlinkSync(link)
  } catch {
    return undefined
  }
}

/**
 * Waits until no other run is at work in this clone. flock(2)'s lock goes with the process that holds it, kill -9
 * included, so there are no stale ones (src/embedded/server.ts says more). Where there is none, it goes on without.
 */
function lock (root) {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const exclusive = process.platform === 'darwin' ? 0x20 : 0 // O_EXLOCK
  const fd = openSync(join(root, '.cache/bootstrap.lock'), constants.O_RDWR | constants.O_CREAT | exclusive)
  if (process.platform === 'linux') spawnSync('flock', ['3'], { stdio: ['ignore', 'ignore', 'ignore', fd] })
}

/**
 * What a start doesn't need is left out of an install; but not where it was there before: a developer works with it.
 */
function leftOut (root) {
  const present = Object.values(packages(join(root, 'node_modules/.package-lock.json')) ?? {})
  return [
    ...present.some(({ dev }) => dev) ? ['--include=dev'] : ['--omit=dev'],
    ...present.some(({ dev, optional }) => optional && !dev) ? [] : ['--omit=optional'],
  ]
}

async function npmCi (cwd, ...options) {
  const npm = process.env.npm_execpath
  const [command, first] = basename(npm ?? '').startsWith('npm-cli') ? [process.execPath, [npm]] : ['npm', []]
  // Where packages come from is the user's choice and stays; what this run of npm was set for its own script isn't
  // ours.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) =>
    !/^npm_(lifecycle|package|command|config_(local_)?prefix)/.test(name)))
  const args = [
    ...first, 'ci', ...options, '--no-audit', '--no-fund', '--global=false', '--dry-run=false',
    '--package-lock-only=false'
  ]
  const progress = stepProgress('installing')
  const wanted = Object.keys(packages(join(cwd, 'package-lock.json')) ?? {}).filter((path) => path !== '')
  const count = () => wanted.filter((path) => existsSync(join(cwd, path, 'package.json'))).length
  const timer = setInterval(() => progress(`${count()} of at most ${wanted.length} packages`), soon)
  const { status, signal, error, stdout, stderr } = await runToEnd(command, args, { cwd, env })
  clearInterval(timer)
  progress()
  if (status === 0) return
  const [, unreached] =
    /^npm error code (E(?:AI_AGAIN|CONNREFUSED|CONNRESET|HOSTUNREACH|NETUNREACH|NOTCACHED|NOTFOUND|TIMEDOUT)|ERR_SOCKET_TIMEOUT)$/m.exec(stderr) ?? []
  if (unreached !== undefined) {
    throw new Error(`npm can't reach its registry (${unreached}), and packages are ` +
    'missing: try again when there is a network')
  }
  throw new Error(
    error?.message ?? `${stdout}${stderr}${signal === null ? '' : `npm was ended by ${signal}`}`.trimEnd()
  )
}

/** Runs a program to its end. */
function runToEnd (command, args, options) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', (text) => { said[name] += text })
    }
    child.once('error', (error) => resolve({ ...said, status: null, signal: null, error }))
    child.once('close', (status, signal) => resolve({ ...said, status, signal }))
  })
}

/**
 * Compiled beside and then put in place, so a run that is killed leaves no half build and a deleted source no output.
 * Types are only taken out: to check them needs the packages of tests, and five times as long.
 */
async function build (root) {
  const made = join(root, '.cache/build')
  const sources = sourcesDigest(root) // before: what changes meanwhile is built next time
  rmSync(made, { recursive: true, force: true })
  const progress = stepProgress('building')
  compile(root, made, await compilerOf(root), progress)
  makeExecutable(made)
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  renameSync(made, join(root, 'dist'))
  // The Lua scripts as Redis runs them: the program finds lua/ beside dist/. Then the clients' types.
  await runProgram(root, 'dist/store/whole-scripts.js', join(root, 'dist/lua'))
  await runProgram(root, 'dist/clients/types/generate.js', join(root, 'src/clients'))
  const began = Date.now()
  const seconds = () => Math.round((Date.now() - began) / 1000)
  const timer = setInterval(() => progress(`the packages of the clients, for ${seconds()} s`), soon)
  const compiler = join(await compilerHome(root), compilerCommand)
  await runProgram(root, 'src/clients/pack.mjs', join(root, 'dist/clients'), compiler)
    .finally(() => clearInterval(timer))
  progress()
  // last, as it says that the rest is there
  writeFileSync(join(root, 'dist/.sources'), sources + generatedDigest(root))
}

/** Makes the clients' types alone, of the sources as they are: the packages of tests run those. */
async function makeTypes (root) {
  await runProgram(root, 'src/clients/types/generate.ts', join(root, 'src/clients'))
}

/** Runs a program of the build, if the sources have it. */
async function runProgram (root, program, ...args) {
  if (!existsSync(join(root, program))) return
  const loader = program.endsWith('.ts') ? ['--import', 'tsx'] : []
  const command = [...loader, join(root, program), ...args]
  const { status, error, stderr } = await runToEnd(process.execPath, command, { cwd: root })
  if (status !== 0) throw new Error(error?.message ?? stderr)
}

function compile (root, made, ts, progress) {
  const { options } = ts.convertCompilerOptionsFromJson(
    JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')).compilerOptions, root
  )
  // A file by itself doesn't show that package.json makes all of them ES modules.
  const compilerOptions = { ...options, module: ts.ModuleKind.ESNext, moduleDetection: ts.ModuleDetectionKind.Force }
  const files = sourcesOf(root)
  for (const [at, file] of files.entries()) {
    progress(`${at} of ${files.length} files`)
    const { outputText, diagnostics } = ts.transpileModule(
      readFileSync(join(root, file), 'utf8'), { fileName: join(root, file), compilerOptions, reportDiagnostics: true }
    )
    if (diagnostics.length > 0) {
      throw new Error(ts.formatDiagnostics(
        diagnostics, { getCanonicalFileName: (name) => name, getCurrentDirectory: () => root, getNewLine: () => '\n' }
      ).trimEnd())
    }
    const to = join(made, relative('src', file).replace(/\.ts$/, '.js'))
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, outputText)
  }
}

const compilerCommand = 'node_modules/typescript/bin/tsc'

/** TypeScript as package-lock.json has it. */
async function compilerOf (root) {
  return createRequire(join(await compilerHome(root), 'package.json'))('typescript')
}

/** Where it is: the tests' own where they are installed, else one that is kept apart from what the service runs on. */
async function compilerHome (root) {
  const path = 'node_modules/typescript'
  const { [path]: wanted } = packages(join(root, 'package-lock.json')) ?? {}
  if (wanted === undefined) throw new Error('package-lock.json names no TypeScript')
  const holds = (place) => isSame(wanted, packages(join(place, 'node_modules/.package-lock.json'))?.[path] ?? {})
  const apart = join(root, '.cache/compiler')
  if (!holds(root) && !holds(apart)) {
    mkdirSync(apart, { recursive: true })
    const project = { name: 'compiler', dependencies: { typescript: wanted.version } }
    writeFileSync(join(apart, 'package.json'), JSON.stringify(project))
    writeFileSync(join(apart, 'package-lock.json'), JSON.stringify({
      name: 'compiler', lockfileVersion: 3, packages: { '': project, [path]: { ...wanted, dev: false } }
    }))
    await npmCi(apart)
  }
  return holds(root) ? root : apart
}

/** The command: the compiler makes plain files, and npx runs them as they are. */
function makeExecutable (made) {
  const command = join(made, 'cli/main.js')
  if (existsSync(command)) chmodSync(command, 0o755)
}

/**
 * The compiler's own command, for the package of the client: after `npm start` there may be none in node_modules. The
 * client's types, which it reads, are there then.
 */
async function tsc (root, args) {
  await bootstrap(root, false, (line) => console.error(line))
  const { status, error } = spawnSync(
    process.execPath, [join(await compilerHome(root), compilerCommand), ...args], { stdio: 'inherit' }
  )
  if (error !== undefined) throw error
  process.exitCode = status ?? 1
}

async function main () {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    throw new Error(`This needs Node.js ${oldest.join('.')} or newer, and this is ${process.versions.node}: see ` +
      'https://nodejs.org')
  }
  const root = dirname(dirname(fileURLToPath(import.meta.url)))
  if (process.argv[2] === '--tsc') return await tsc(root, process.argv.slice(3))
  if (process.argv[2] === '--build') {
    linkCommand(root)
    lock(root)
    return await build(root)
  }
  const args = process.argv.slice(2)
  const folders = args.filter((arg) => !arg.startsWith('--'))
  const make = args.includes('--types') ? makeTypes : build
  await bootstrap(root, args.includes('--all'), (line) => console.log(line), folders, make)
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    await main()
  } catch (error) {
    console.error(error.message)
    process.exit(1)
  }
}
