/** As much of luaparse as the header test uses; it brings no types of its own. */
declare module 'luaparse' {
  export interface LuaNode {
    type: string
    range: [number, number]
    [member: string]: unknown
  }
  const luaparse: { parse (source: string, options: { ranges: true, comments: false }): LuaNode }
  export default luaparse
}
