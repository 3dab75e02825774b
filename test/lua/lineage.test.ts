import { createHash } from 'node:crypto'
import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import { dumped, lineage, put, raw } from '../helpers/scripts.ts'
import { stateNames, states } from '../helpers/states.ts'
import type { State } from '../helpers/states.ts'

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex')

for (const name of stateNames) {
  t.test(name, async t => {
    const test = testRedis(t)
    const on = raw(test)
    const state: State = states[name]
    await put(on, state)
    const { s, x = null } = state.hash ?? {}
    // Where it has gone on to the next attempt it is to be found there.
    const p = state.hash?.p ?? state.next?.hash.p
    // What is done has its result there, and where the line's marks are there is no need of one more.
    const isMarked = p && !/^(2:)?done /.test(s!) && !/ c[0-9a-f]/.test(x ?? '')
    const mark = isMarked ? [sha1(`passer - ${sha1(p)}`).slice(0, 12)] : []
    t.strictSame(await lineage(on, state.now), s === undefined ? ['not_found'] : ['found', state.now, s, x, ...mark])
    t.strictSame(await test.dump(), dumped(state), 'nothing changed')
  })
}
