import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A process of the bench's own that takes orders over IPC, one at a time, and answers each. */
export interface Child<Order extends object> {
  pid: number
  ask<T> (order: Order): Promise<T>
  stop (): Promise<void>
}

/** @param file beside this one @param env in addition to ours */
export function startChild<Order extends object> (file: string, env: Record<string, string> = {}): Child<Order> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), { execArgv: ['--import=tsx'], env: { ...process.env, ...env } })
  const exited = once(child, 'exit')
  return {
    pid: child.pid as number,
    async ask<T> (order: Order) {
      child.send(order)
      const [answer] = await Promise.race([once(child, 'message'), exited.then(() => { throw new Error(`${file} ended, see above`) })])
      return answer as T
    },
    async stop () {
      child.kill('SIGKILL')
      await exited
    },
  }
}
