import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'

/** A mail that the server got: who sent it to whom, and its text as it came. */
export interface GotMail { from: string, to: string[], text: string }

export interface MailServer {
  port: number
  got: GotMail[]
  /** What clients said, without the texts. */
  said: string[]
  /** What it answers a command with, `.` for the end of the text, `220` before any; null says nothing. By default it takes everything. */
  answer: (command: string, socket: Socket) => string | null | undefined
}

const usual: Record<string, string> = { 220: '220 test', DATA: '354 go on', QUIT: '221 bye', '.': '250 taken', AUTH: '235 well' }

/** A mail server on this machine. */
export async function mailServer (t: Test, answer: MailServer['answer'] = () => undefined): Promise<MailServer> {
  const made: MailServer = { port: 0, got: [], said: [], answer }
  const open = new Set<Socket>()
  const server = createServer(socket => {
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
    const reply = (command: string) => {
      const text = made.answer(command, socket)
      const own = command === 'EHLO' ? '250-test\r\n250 AUTH PLAIN' : usual[command] ?? '250 fine'
      if (text !== null && !socket.destroyed) socket.write(`${text ?? own}\r\n`)
    }
    let mail: GotMail = { from: '', to: [], text: '' }
    let isText = false
    createInterface({ input: socket, crlfDelay: 0 }).on('line', line => {
      if (isText && line === '.') {
        isText = false
        made.got.push(mail)
        mail = { from: '', to: [], text: '' }
        return reply('.')
      }
      if (isText) {
        mail.text += `${line.replace(/^\./, '')}\r\n`
        return
      }
      made.said.push(line)
      const [command = ''] = line.toUpperCase().split(/[ :]/)
      if (command === 'MAIL') mail.from = /<(.*)>/.exec(line)![1]!
      if (command === 'RCPT') mail.to.push(/<(.*)>/.exec(line)![1]!)
      isText = command === 'DATA'
      reply(command)
    }).on('error', () => {})
    reply('220')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  made.port = (server.address() as AddressInfo).port
  return made
}
