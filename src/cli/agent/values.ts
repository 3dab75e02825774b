import { readFileSync } from 'node:fs'
// Imports only part of the client, since every command loads this file.
import { rawJson } from '../../client/raw-json.ts'
import type { RawJson } from '../../client/raw-json.ts'
import { readDuration } from '../../durations.ts'
import { UsageError, oneLine } from '../failure.ts'
import { wrong } from '../values.ts'

/** Parsers of the agents' options. The service checks what depends on its settings. */

/** `0s`, `60s`, `15m`, and `60`: the API's durations are plain seconds, and agents know those. @returns seconds */
export function parseSeconds (option: string, text: string): number {
  const duration = readDuration(/^[0-9]+$/.test(text) ? `${text}s` : text)
  if (duration === undefined || duration % 1000 > 0) throw wrong(option, text, 'takes whole seconds, or a whole number with its unit, as in 30s, 15m, 48h or 90d')
  return duration / 1000
}

/** A whole number. */
export function parseCount (option: string, text: string): number {
  if (!/^(0|[1-9][0-9]{0,5})$/.test(text)) throw wrong(option, text, 'takes a whole number')
  return Number(text)
}

export function parsePercent (option: string, text: string): number {
  if (!/^[0-9]{1,3}(\.[0-9]{1,6})?$/.test(text) || Number(text) > 100) throw wrong(option, text, 'takes a number from 0 to 100')
  return Number(text)
}

/**
 * JSON text, or `@file`, or `-` for standard input. It is sent as it is, so that no number changes.
 * @throws {UsageError} if it is no JSON object, or can't be read
 */
export function parseObject (option: string, text: string): RawJson {
  const json = (text === '-' ? read(option, 0) : text.startsWith('@') ? read(option, text.slice(1)) : text).trim()
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (error) {
    throw new UsageError(`${option}: not valid JSON: ${oneLine((error as Error).message)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new UsageError(`${option} takes a JSON object, as in '{"total": 3}', or @file, or - for standard input`)
  return rawJson(json)
}

/** An Idempotency-Key. */
export function parseKey (option: string, text: string): string {
  if (!/^[!-~]{1,128}$/.test(text)) throw wrong(option, text, 'takes 1 to 128 visible ASCII characters')
  return text
}

function read (option: string, file: string | number): string {
  try {
    // Other bytes than UTF-8's would be replaced, and nobody would see it.
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    throw new UsageError(`${option}: ${oneLine((error as Error).message)}`)
  }
}
