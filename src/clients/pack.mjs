// node pack.mjs FOLDER COMPILER: makes the clients that the service hands out, in a folder: what `npm pack` makes of
// the TypeScript client with its command, without the version in its name, and Python's wheel. Types are checked
// elsewhere (npm run typecheck), so it takes few seconds.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeWheel } from './wheel.mjs'

// The modes of what is made are the same for everybody.
process.umask(0o022)
const here = join(dirname(fileURLToPath(import.meta.url)), 'typescript')
const [folder, compiler] = process.argv.slice(2).map(path => resolve(path))

function run (command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: here, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`)
}

// Beside what there is, which programs may be using.
const made = join(here, '.made')
rmSync(made, { recursive: true, force: true })
// Comments are for those who read the types; the code goes without.
run(process.execPath, [compiler, '-p', 'command', '--outDir', made])
chmodSync(join(made, 'command/main.js'), 0o755)
run(process.execPath, [compiler, '-p', 'tsconfig.json', '--noCheck', '--emitDeclarationOnly', '--outDir', made])
rmSync(join(here, 'dist'), { recursive: true, force: true })
renameSync(made, join(here, 'dist'))
mkdirSync(folder, { recursive: true })
const packed = mkdtempSync(join(folder, '.pack-'))
run('npm', ['pack', '--ignore-scripts', '--pack-destination', packed])
renameSync(join(packed, readdirSync(packed)[0]), join(folder, 'agent-handoff-client.tgz'))
rmSync(packed, { recursive: true })
writeWheel(folder)
