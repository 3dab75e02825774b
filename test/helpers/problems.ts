import type { Test } from 'tap'

interface Answered { statusCode: number, headers: Record<string, string | string[] | number | undefined>, body: string }

/** Checks an answer against docs/api.md, "Errors", and returns its document for further checks. */
export function isProblem (t: Test, answer: Answered, status: number, code: string, name = `${status} ${code}`): Record<string, any> {
  const { statusCode, headers, body } = answer
  t.match(headers['content-type'], /^application\/problem\+json(;|$)/, `${name}: media type`)
  t.equal(headers['cache-control'], 'no-store', `${name}: not to be stored`)
  const document = JSON.parse(body)
  t.match(document, {
    type: `/problems#${code}`, title: /./, status, detail: /./, code, retryable: [408, 429, 503].includes(status), request_id: /^[A-Za-z0-9._-]{1,128}$/
  }, name)
  t.equal(statusCode, status, `${name}: status line`)
  t.equal(headers['x-request-id'], document.request_id, `${name}: request id`)
  t.notMatch(body, /node_modules|\.ts:|\.js:|WRONGTYPE|ERR |redis\.call/, `${name}: nothing internal`)
  return document
}
