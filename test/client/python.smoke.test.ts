import { execFile, execFileSync } from 'node:child_process'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { scratchDir } from '../helpers/processes.ts'
import { findPython, passesInPython, pythonRoot } from '../helpers/python.ts'
import { projectRoot } from '../helpers/service.ts'

const run = promisify(execFile)
const python = findPython()
const skip = python === undefined ? 'no Python 3.10 or later is to be had' : false

t.test('the Python client, where something is in the way, and its workers', t => passesInPython(t, ['test_faults', 'test_inboxes', 'test_worker']))

/** Whether Python can do that here. */
function can (...args: string[]): boolean {
  try {
    execFileSync(python!, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const skipTypes = skip || (can('-m', 'mypy', '--version') ? false : 'no mypy is to be had')

t.test('its types are right', { skip: skipTypes }, async t => {
  const { stdout } = await run(python!, ['-m', 'mypy', '--strict', '--python-version', '3.10', '--cache-dir', await scratchDir(t), 'agent_handoff'], { cwd: pythonRoot })
  t.match(stdout, /^Success/)
})

/** What mypy says nothing of, and lines that it must refuse. */
const typed = `
from typing import TypedDict
from agent_handoff import AsyncClient, Client, Context, define_inbox
from agent_handoff.types import Handoff

class Rows(TypedDict):
    rows: list[str]

class Count(TypedDict):
    count: int

counter = define_inbox("counter", input=Rows, result=Count)
free = define_inbox("free", result=Count)

def count(handoff: Handoff, context: Context) -> Count:
    return {"count": len(counter.output(handoff)["rows"])}

def passes(client: Client) -> int:
    client.pass_("t", to=counter, output={"rows": ["a"]}, max_attempts=2)
    client.pass_("t", to=free)
    client.pass_("t", to=free, output={"any": 1})
    client.pass_("t", to=counter, output={"rows": [1]})  # wrong
    client.pass_("t", to=counter, output={"row": ["a"]})  # wrong
    client.pass_("t", to=counter)  # wrong
    client.pass_("t", to=free, output=5)  # wrong
    client.work(counter, count)
    client.work(free, lambda handoff, context: {"count": len(free.output(handoff))})
    client.work(counter, lambda handoff, context: {"count": "two"})  # wrong
    status = client.wait_for("id", of=counter)
    print(counter.result(status)["sum"])  # wrong
    return counter.result(status)["count"]

async def passes_too(client: AsyncClient) -> None:
    await client.pass_("t", to=counter, output={"rows": ["a"]})
    await client.pass_("t", to=counter, output={"rows": [1]})  # wrong
`

t.test('and with define_inbox what is passed and returned has them', { skip: skipTypes }, async t => {
  const dir = await scratchDir(t)
  const program = join(dir, 'typed.py')
  await writeFile(program, typed)
  const { stdout } = await run(python!, ['-m', 'mypy', '--strict', '--python-version', '3.10', '--cache-dir', dir, program], { env: { ...process.env, MYPYPATH: pythonRoot } })
    .catch((error: { stdout: string }) => error)
  const faults = [...stdout.matchAll(/typed\.py:(\d+): error:/g)].map(([, line]) => Number(line))
  t.strictSame(faults, typed.split('\n').flatMap((line, at) => line.endsWith('# wrong') ? [at + 1] : []), stdout)
})

t.test('its wheel is the same each time, and pip installs it', async t => {
  const [one, two] = [await scratchDir(t), await scratchDir(t)]
  const { writeWheel } = await import(pathToFileURL(join(projectRoot, 'src/clients/wheel.mjs')).href)
  for (const dir of [one, two, two]) writeWheel(dir)
  const [name, ...others] = await readdir(two)
  const { version } = JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8'))
  t.strictSame([name, others], [`agent_handoff-${version}-py3-none-any.whl`, []])
  const wheel = await readFile(join(one, name!))
  t.ok(wheel.equals(await readFile(join(two, name!))))
  t.ok(wheel.equals(await readFile(join(projectRoot, 'dist/clients', name!))), 'the build makes this one')
  if (skip) return t.pass('not installed', { skip })
  await run(python!, ['-c', 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).testzip()', join(one, name!)])
  const venv = join(one, 'venv')
  if (!can('-m', 'venv', venv)) return t.pass('not installed', { skip: 'no venv can be made here' })
  const own = join(venv, 'bin/python3')
  await run(own, ['-m', 'pip', 'install', '--no-index', '--no-deps', '--disable-pip-version-check', join(one, name!)])
  const check = `
import agent_handoff, importlib.metadata as m, pathlib, typing
from agent_handoff import types
assert typing.is_typeddict(types.Passed) and typing.get_type_hints(types.PassMembers)
print(m.version("agent-handoff"), m.requires("agent-handoff"), (pathlib.Path(agent_handoff.__file__).parent / "py.typed").exists())`
  t.equal((await run(own, ['-c', check], { cwd: one })).stdout, `${version} ['cryptography>=38; extra == "verify"'] True\n`)
  await run(own, ['-m', 'pip', 'uninstall', '--yes', '--disable-pip-version-check', 'agent-handoff'])
  t.equal(await run(own, ['-c', 'import agent_handoff'], { cwd: one }).then(() => 'still there', () => 'gone'), 'gone', 'its RECORD names all of it')
})
