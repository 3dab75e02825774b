#!/usr/bin/env node
import { runCommand } from './command.ts'

// ioredis says there what it may not ask for and whom it doesn't reach; what comes of it is told at the end.
console.warn = console.error = () => {}
// All is closed by then, but ioredis holds on to a Sentinel that refused it for two seconds.
runCommand(process.argv.slice(2)).then(status => process.exit(status))
