import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run, which } from '../src/embedded/programs.ts'

/** Instructions that a process has executed in user mode, those of the kernel on its behalf not among them. */
export interface Instructions {
  /** In what V8 has made of JavaScript, and in its handwritten parts of that (`Builtins_`: its interpreter, property look-ups, strings, promises). */
  javascript: number
  /** In compiled programs and libraries: V8's garbage collection and JSON, node, libuv, cryptography; all of redis-server. */
  native: number
}

/** Counts the instructions of processes that run under it. They are about 50 times slower while it does. */
export interface Callgrind {
  /** What is to stand before a process's program and its arguments. */
  readonly under: readonly string[]
  /** @param pid of a process that was started under it */
  count (pid: number, work: () => Promise<unknown>): Promise<Instructions>
  remove (): Promise<void>
}

/** What is missing to count instructions, or null. */
export async function missingForCallgrind (): Promise<string | null> {
  for (const program of ['valgrind', 'vgdb']) if (await which(program) === undefined) return program
  return null
}

/** Its files are in a scratch directory. */
export async function startCallgrind (): Promise<Callgrind> {
  const dir = await mkdtemp(join(tmpdir(), 'handoff-bench-callgrind-'))
  const out = (pid: number | string) => join(dir, `out.${pid}`)
  const dumps = new Map<number, number>()
  const tell = (pid: number, ...command: string[]) => run('vgdb', [`--pid=${pid}`, ...command])
  return {
    // Nothing is counted from the start, which makes starts faster. Code that was compiled at run time is changed at run time.
    under: ['valgrind', '-q', '--tool=callgrind', '--instr-atstart=no', '--smc-check=all-non-file', `--callgrind-out-file=${out('%p')}`],
    async count (pid, work) {
      await tell(pid, 'instrumentation', 'on')
      await tell(pid, 'zero')
      await work()
      await tell(pid, 'dump')
      const dump = (dumps.get(pid) ?? 0) + 1
      dumps.set(pid, dump)
      return sumUp(await readFile(`${out(pid)}.${dump}`, 'utf8'))
    },
    remove: () => rm(dir, { recursive: true }),
  }
}

/**
 * Adds up a file of callgrind's. Its lines are objects (`ob=`, files of code), files and functions, by a number once they were named, and then what was
 * spent there: a line number and a count. A line after `calls=` is what a called function spent, which stands there once more.
 */
export function sumUp (dump: string): Instructions {
  const found: Instructions = { javascript: 0, native: 0 }
  const names = new Map<string, string>()
  let [object, name, isCall] = ['', '', false]
  for (const line of dump.split('\n')) {
    const [, what, number, named] = /^(ob|fn|cob|cfn)=\((\d+)\)(?: (.*))?$/.exec(line) ?? []
    if (what !== undefined) {
      const key = `${what.slice(-2)}${number}`
      if (named !== undefined) names.set(key, named)
      if (what === 'ob') object = names.get(key) ?? ''
      if (what === 'fn') name = names.get(key) ?? ''
    } else if (line.startsWith('calls=')) {
      isCall = true
    } else {
      const [, count] = /^[+*\d-]\S* (\d+)$/.exec(line) ?? []
      // What is in no file was compiled at run time.
      if (count !== undefined && !isCall) found[object === '???' || name.startsWith('Builtins_') ? 'javascript' : 'native'] += Number(count)
      if (count !== undefined) isCall = false
    }
  }
  return found
}
