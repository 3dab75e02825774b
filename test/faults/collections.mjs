import { Session } from 'node:inspector'

/**
 * What all Maps and Sets of this process hold. Asked of the inspector, since nothing else finds them all.
 * @param {RegExp} pattern
 * @returns {{ entries: number, largest: Array<[size: number, firstKey: string]>, named: string[] }} `named`: the keys that match
 */
export function collections (pattern) {
  const session = new Session()
  session.connect()
  /** @type {(method: string, params: object) => any} */
  const ask = (method, params) => {
    let answer
    session.post(method, params, (error, result) => { answer = error ?? result })
    return answer
  }
  const objectGroup = 'collections'
  const all = ['Map', 'Set'].map(kind => {
    const { result: { objectId: prototypeObjectId } } = ask('Runtime.evaluate', { expression: `${kind}.prototype`, objectGroup })
    const { objects: { objectId } } = ask('Runtime.queryObjects', { prototypeObjectId, objectGroup })
    const { result } = ask('Runtime.callFunctionOn', { objectId, functionDeclaration: String(look), arguments: [{ value: pattern.source }], returnByValue: true })
    return result.value
  })
  ask('Runtime.releaseObjectGroup', { objectGroup })
  session.disconnect()
  return {
    entries: all.reduce((sum, { entries }) => sum + entries, 0),
    largest: all.flatMap(({ largest }) => largest).sort(([one], [other]) => other - one),
    named: all.flatMap(({ named }) => named),
  }
}

/**
 * Runs in the inspector.
 * @this {Array<Map<unknown, unknown>>} all of them, and the prototypes of classes derived from them
 * @param {string} pattern
 */
function look (pattern) {
  const all = this.filter(one => !Object.hasOwn(one, 'constructor') && one.size > 0).map(one => [...one.keys()])
  const wanted = new RegExp(pattern)
  const text = (/** @type {unknown} */ key) => typeof key === 'object' || typeof key === 'function' ? `an ${typeof key}` : String(key)
  return {
    entries: all.reduce((sum, { length }) => sum + length, 0),
    largest: all.map(keys => [keys.length, text(keys[0]).slice(0, 40)]).sort(([one], [other]) => Number(other) - Number(one)).slice(0, 20),
    named: all.flatMap(keys => keys.filter(key => typeof key === 'string' && wanted.test(key))),
  }
}
