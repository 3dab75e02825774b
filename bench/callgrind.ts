import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run, which } from '../src/embedded/binary.ts'

/** Instructions that a process has executed in user mode, without the kernel's. */
export interface Instructions {
  /** JavaScript as V8 runs it, including its `Builtins_` (interpreter, property look-ups, strings, promises). */
  javascript: number
  /** Compiled programs and libraries: V8's garbage collection and JSON, node, libuv, cryptography; all of redis-server. */
  native: number
}

/** Counts the instructions of the processes that it runs. They are about 50 times slower than usual. */
export interface Callgrind {
  /** The command to put before a process's program and arguments. */
  readonly under: readonly string[]
  /** @param pid of a process that was started with it */
  count (pid: number, work: () => Promise<unknown>): Promise<Instructions>
  remove (): Promise<void>
}

/** The program that is missing for counting instructions, or null. */
export async function missingForCallgrind (): Promise<string | null> {
  for (const program of ['valgrind', 'vgdb']) if (await which(program) === undefined) return program
  return null
}

/** Keeps its files in a scratch directory. */
export async function startCallgrind (): Promise<Callgrind> {
  const dir = await mkdtemp(join(tmpdir(), 'handoff-bench-callgrind-'))
  const out = (pid: number | string) => join(dir, `out.${pid}`)
  const dumps = new Map<number, number>()
  const tell = (pid: number, ...command: string[]) => run('vgdb', [`--pid=${pid}`, ...command])
  return {
    // Counting begins later, which makes starts faster. Code that is compiled at run time also changes at run time.
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
 * Adds up one of callgrind's files. Its lines name objects (`ob=`, code files), files and functions (later by number only), followed by their cost:
 * a line number and a count. The line after `calls=` is the cost of a called function, which is also counted elsewhere.
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
      // Code outside any file was compiled at run time.
      if (count !== undefined && !isCall) found[object === '???' || name.startsWith('Builtins_') ? 'javascript' : 'native'] += Number(count)
      if (count !== undefined) isCall = false
    }
  }
  return found
}
