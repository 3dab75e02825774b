import t from 'tap'
import { filesApp, smallDisk } from '../helpers/files.ts'
import { isProblem } from '../helpers/problems.ts'

/** A disk that fills up while a file comes. */

const { directory, skip } = await smallDisk(t)

t.test('what has no room is 503, leaves nothing, and comes once there is room', { skip }, async t => {
  const { make, call, put } = await filesApp(t, {}, { directory })
  const large = Buffer.alloc(800_000, 'x')
  const { file_id: id, upload } = (await make(large)).json()
  const first = await put(large)
  isProblem(t, await make(large), 503, 'unavailable', 'nor is there room for another')
  const send = async () => await fetch(upload.url, { method: 'PUT', body: large })
  const refused = await send()
  t.equal(refused.status, 503)
  t.match(await refused.json(), { code: 'unavailable', retryable: true, detail: /disk/ })
  t.equal((await call('alice', 'GET', `/api/files/${id}`)).json().state, 'waiting')
  t.equal((await call('alice', 'DELETE', `/api/files/${first}`)).statusCode, 204)
  t.equal((await send()).status, 204, 'nothing of the first attempt takes room')
  t.equal((await call('alice', 'GET', `/api/files/${id}`)).json().state, 'whole')
  const spared = await filesApp(t, {}, { directory, files: { spare: { share: 0.5, bytes: 0 } } })
  isProblem(t, await spared.make('four'), 503, 'unavailable', 'half of it is to stay free')
})
