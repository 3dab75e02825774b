import { html } from 'ghtml'
import { uploadIn } from '../../core/files.ts'
import type { HandoffFile } from '../../core/files.ts'
import { hrefOf, hostApart } from '../markdown-inline.ts'
import { fileSize, inWords, visible } from '../text.ts'

/** Files, for people to read: what each is called and how large it is, and where it lies. Nothing is fetched. */
export function filesView (files: readonly HandoffFile[]): string {
  return html`<ul class="files">!${files.map(fileRow)}</ul>`
}

function fileRow ({ name, media_type: type, bytes, sha256, uri }: HandoffFile): string {
  const isLink = uploadIn(uri) === null
  const facts = [
    bytes === undefined ? 'size not given' : html`<span title="${inWords(bytes)} bytes">${fileSize(bytes)}</span>`,
    type === undefined ? '' : html`${type}`,
    isLink && sha256 === undefined ? '<strong class="loose">content not fixed</strong>' : ''
  ]
  return html`<li><div class="name" dir="auto">!${visible(name)}</div>
<div class="facts">!${facts.filter(fact => fact !== '').map(fact => html`<span>!${fact}</span> `)}</div>
!${isLink ? html`<div class="place" dir="ltr">!${placeView(uri)}</div>` : ''}!${sha256 === undefined
    ? ''
    : html`<div class="sum">SHA-256 <code>${sha256}</code></div>`}</li>`
}

/** A link that says where it goes, its host apart; text where no link may go. */
function placeView (uri: string): string {
  const href = hrefOf(uri)
  if (href === null) return visible(uri)
  const [start, host, rest] = hostApart(href)
  return html`<a href="${href}" rel="noreferrer noopener" target="_blank">${start}<b>${host}</b>${rest}</a>`
}
