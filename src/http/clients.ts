import { readFileSync, readdirSync } from 'node:fs'
import { fixed } from './fixed-answers.ts'
import type { Fixed } from './fixed-answers.ts'

/** The clients that come with the service, as the build left them. */
const folder = new URL('../../dist/clients/', import.meta.url)

/** The package of the TypeScript client and of the command. */
const packageName = 'agent-handoff-client.tgz'

/** What is served, by the end of its name. */
const kinds = [
  {
    ending: '.tgz',
    type: 'application/gzip',
    of: 'TypeScript and JavaScript',
    install: 'npm install',
    worker: `// worker.mjs
import { HandoffClient } from 'agent-handoff-client'

const client = new HandoffClient()
await client.work('shouts', async ({ task }) => ({ loud: task.toUpperCase() }))`
  },
  {
    ending: '.whl',
    type: 'application/zip',
    of: 'Python',
    install: 'pip install',
    worker: `# worker.py
from agent_handoff import Client

client = Client()

@client.worker("shouts")
def shout(handoff, context):
    return {"loud": handoff["task"].upper()}

client.run()`
  },
] as const

/** A client's file: its media type, and for whom it is. */
export interface ClientFile {
  name: string
  type: string
  of: string
  /** The command that installs it, but for the file's address. */
  install: string
  /** A program that serves an inbox. */
  worker: string
  content: Fixed
}

/** Reads the clients; none if the service wasn't built. */
export function readClients (): ClientFile[] {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch {
    return []
  }
  return kinds.flatMap(({ ending, ...kind }) => names.filter(name => name.endsWith(ending)).map(name =>
    ({ name, ...kind, content: fixed(readFileSync(new URL(name, folder))) })))
}

/** The command that installs a client from this service. */
export function installLine (baseUrl: string, { install, name }: Pick<ClientFile, 'install' | 'name'>): string {
  return `${install} ${baseUrl}/clients/${name}`
}

/** Where this service has the package of the TypeScript client, which npx runs as the command. */
export function packageUrl (baseUrl: string): string {
  return `${baseUrl}/clients/${packageName}`
}

/** The commands by which any machine with Node serves an inbox. The key is in HANDOFF_KEY. */
export function workerLines (baseUrl: string): string {
  return `export HANDOFF_URL=${baseUrl} HANDOFF_KEY\nnpx ${packageUrl(baseUrl)} work INBOX -- COMMAND`
}

/** What that does. */
export const workerText = 'Any machine with Node can serve an inbox. COMMAND runs for each handoff: it reads the ' +
  'JSON of catch on its standard input, and its output is the result.'
