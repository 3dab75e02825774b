import { channel } from 'node:diagnostics_channel'

/** The message on the diagnostics channel `handoff.script` for each call. src/tracing subscribes to it, if loaded. */
export interface ScriptCall { script: string, answer: Promise<unknown> }

/** It costs nothing without subscribers. */
export const scriptCalls = channel('handoff.script')
