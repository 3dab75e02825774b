import { channel } from 'node:diagnostics_channel'

/** What the channel `handoff.script` tells of each call, where anybody listens: src/tracing does, when it is loaded. */
export interface ScriptCall { script: string, answer: Promise<unknown> }

/** It costs nothing while nobody does. */
export const scriptCalls = channel('handoff.script')
