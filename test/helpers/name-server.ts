import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { scratchDir } from './processes.ts'

const types: Record<number, 'A' | 'AAAA'> = { 1: 'A', 28: 'AAAA' }

/** A question that a name server got: `a.test A`. */
export type Asked = `${string} ${'A' | 'AAAA'}`

export interface NameServer {
  port: number
  /** Addresses by name; null: it doesn't answer. Whatever isn't here doesn't exist. */
  names: Record<string, string[] | null>
  /** Questions that it doesn't answer. */
  ignores: Set<Asked>
  /** The response code of all its answers, if it refuses: 2 it can't answer, 4 it doesn't know how, 5 it won't. */
  refusal: number | undefined
  /** All questions, in their order. One that is sent again is there again. */
  asked: Asked[]
  /** Paths of files that stand for /etc/hosts and /etc/resolv.conf. */
  files: { hosts: string, resolvConf: string }
}

/** A name server on this machine, over UDP, and a file of the resolver’s settings that names it. */
export async function nameServer (t: Test, names: NameServer['names'] = {}, { hosts = '', options = '' } = {}): Promise<NameServer> {
  const socket = createSocket('udp4')
  const dir = await scratchDir(t)
  const made: NameServer = { port: 0, names, ignores: new Set(), refusal: undefined, asked: [], files: { hosts: join(dir, 'hosts'), resolvConf: join(dir, 'resolv.conf') } }
  socket.on('message', (query, { port, address }) => {
    const { name, type, end } = questionOf(query)
    if (type !== undefined) made.asked.push(`${name} ${type}`)
    const known = Object.hasOwn(made.names, name) ? made.names[name]! : undefined
    if (known === null || made.ignores.has(`${name} ${type!}`)) return
    const answer = answerTo(query, end, made.refusal === undefined ? known?.filter(one => isIP(one) === (type === 'A' ? 4 : 6)) : [])
    answer[3]! |= made.refusal ?? 0
    socket.send(answer, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  made.port = socket.address().port
  await writeFile(made.files.hosts, hosts)
  await writeFile(made.files.resolvConf, `nameserver 127.0.0.1:${made.port}\n${options}\n`)
  return made
}

function questionOf (query: Buffer): { name: string, type: 'A' | 'AAAA' | undefined, end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  return { name: labels.join('.').toLowerCase(), type: types[query.readUInt16BE(at + 1)], end: at + 5 }
}

/** The question again, and behind it the addresses, each with a pointer to the question's name. */
function answerTo (query: Buffer, end: number, found: readonly string[] | undefined): Buffer {
  const addresses = found ?? []
  const head = Buffer.from(query.subarray(0, end))
  head.writeUInt16BE(found === undefined ? 0x8183 : 0x8180, 2)
  head.writeUInt16BE(addresses.length, 6)
  head.writeUInt32BE(0, 8)
  return Buffer.concat([head, ...addresses.map(address => {
    const data = isIP(address) === 4 ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address)
    const record = Buffer.alloc(12)
    record.writeUInt16BE(0xC00C, 0)
    record.writeUInt16BE(data.length === 4 ? 1 : 28, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt32BE(1, 6)
    record.writeUInt16BE(data.length, 10)
    return Buffer.concat([record, data])
  })])
}

function ipv6Bytes (address: string): Buffer {
  const [head, tail] = address.split('::').map(part => part === '' ? [] : part.split(':'))
  const groups = tail === undefined ? head! : [...head!, ...new Array<string>(8 - head!.length - tail.length).fill('0'), ...tail]
  return Buffer.from(groups.map(group => group.padStart(4, '0')).join(''), 'hex')
}
