/** The part of luaparse that the header test uses; the package has no types of its own. */
declare module 'luaparse' {
  export interface LuaNode {
    type: string
    range: [number, number]
    [member: string]: unknown
  }
  const luaparse: { parse (source: string, options: { ranges: true, comments: false, luaVersion?: '5.1', encodingMode?: 'pseudo-latin1' }): LuaNode }
  export default luaparse
}
