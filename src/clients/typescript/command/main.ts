#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { exitStatus, run } from './run.ts'
import { verbs } from './verbs.ts'

// The package's, which is two folders above dist/command.
const file = new URL('../../package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }
exitStatus(() => run(verbs, process.argv.slice(2), version)).then(status => process.exit(status))
