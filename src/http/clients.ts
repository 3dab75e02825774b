import { readFileSync, readdirSync } from 'node:fs'
import { version } from '../core/version.ts'
import { fixed } from './fixed-answers.ts'
import type { Fixed } from './fixed-answers.ts'

/** The clients that come with the service, as the build left them. */
const folder = new URL('../../dist/clients/', import.meta.url)

/** The package of the TypeScript client and of the command, whatever its version, for single runs. */
const packageName = 'agent-handoff-client.tgz'

/**
 * The same, of this version: for what stays, such as a project's lock file, which has the digest of these bytes. After
 * an update the other address has other bytes.
 */
const versionedName = `agent-handoff-client-${version}.tgz`

/**
 * npm 12 refuses to install from an address unless it is allowed to. `root`: only the packages that the command names,
 * not their dependencies. npm 10 ignores it.
 */
const allowsAddress = '--allow-remote=root'

/** The same as environment variables. */
export const allowingAddress = { npm_config_allow_remote: 'root' } as const

/** Starts the package at an address; without `-y` npx asks first. */
const npx = `npx -y ${allowsAddress}`

/** The served files, by the end of their names. */
const kinds = [
  {
    ending: '.tgz',
    type: 'application/gzip',
    of: 'TypeScript and JavaScript',
    install: `npm install ${allowsAddress}`,
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
  /** With its version. */
  name: string
  /** Its names: also the one without a version, where it has one. */
  names: readonly string[]
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
  return kinds.flatMap(({ ending, ...kind }) => names.filter(name => name.endsWith(ending)).map(file => {
    const all = file === packageName ? [versionedName, file] : [file]
    return { name: all[0]!, names: all, ...kind, content: fixed(readFileSync(new URL(file, folder))) }
  }))
}

/** The file in place of a client that isn't here, mostly of another version. Undefined for other files. */
export function presentOne (file: string, clients: readonly ClientFile[]): ClientFile | undefined {
  return clients.find(({ name }) => file.endsWith(name.slice(-4)))
}

/** The command that installs a client from this service. */
export function installLine (baseUrl: string, { install, name }: Pick<ClientFile, 'install' | 'name'>): string {
  return `${install} ${addressOf(baseUrl, { name })}`
}

/** Where this service has a client. */
export function addressOf (baseUrl: string, { name }: Pick<ClientFile, 'name'>): string {
  return `${baseUrl}/clients/${name}`
}

/** The package of the TypeScript client, of this version: what npx runs as the command in a line that stays. */
export function versionedPackage (baseUrl: string): string {
  return addressOf(baseUrl, { name: versionedName })
}

/** The command without a clone: what to write in place of `handoff`. */
export function commandLine (baseUrl: string): string {
  return `${npx} ${addressOf(baseUrl, { name: packageName })}`
}

/** The commands by which any machine with Node serves an inbox. The key is in HANDOFF_KEY. */
export function workerLines (baseUrl: string): string {
  return `export HANDOFF_URL=${baseUrl} HANDOFF_KEY\n${commandLine(baseUrl)} work INBOX -- COMMAND`
}

/** What that does. */
export const workerText = 'Any machine with Node can serve an inbox. COMMAND runs for each handoff: it reads the ' +
  'JSON of catch on its standard input, and its output is the result.'
