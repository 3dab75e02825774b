import { html } from 'ghtml'
import { zoneKey, zoned } from '../formats.ts'

/**
 * A time has its zone beside it: without scripts that is UTC; page.js makes it the reader's.
 * @param key the time's field
 */
export function zoneOf (key: string, zone: string): string {
  return html`<input type="hidden" name="${zoneKey(key)}" value="${zone}" data-zone="${key}"><span class="zone quiet">${zone === 'Z' ? 'UTC' : `UTC${zone}`}</span>`
}

/** From when, and until when, a list is wanted. Empty for any time. */
export function timeFields ({ since = '', until = '' }: { since?: string, until?: string }): string {
  return field('since', 'From', since) + field('until', 'Until', until)
}

function field (key: string, title: string, time: string): string {
  const [value, zone] = zoned(time)
  return html`<div class="moment"><label for="${key}">${title} !${zoneOf(key, zone)}</label><input type="datetime-local" step="1" id="${key}" name="${key}" value="${value}"></div>`
}
