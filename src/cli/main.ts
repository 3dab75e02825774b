#!/usr/bin/env node
import { runCommand } from './command.ts'

// ioredis prints its own connection errors and refused commands there. The command reports the consequence itself, at
// the end.
console.warn = console.error = () => {}
// Everything is closed by then, but ioredis keeps the process alive for two seconds after a Sentinel refused it.
runCommand(process.argv.slice(2)).then(status => process.exit(status))
