import luaparse from 'luaparse'
import type { LuaNode } from 'luaparse'
import { statuses } from '../../src/core/model.ts'

/** What a script's code does, according to its syntax tree. */
export interface LuaCode {
  /** The indexes used with KEYS and ARGV. */
  keys: number[]
  args: number[]
  /** Uses of KEYS or ARGV other than with a literal index. */
  otherUses: string[]
  /** Redis commands in source order. */
  commands: Array<Command & { at: number }>
  /** Other function calls, by name. */
  calls: string[]
  returns: Array<{ at: number, tags: string[], last: boolean }>
  /** Where loops are. */
  loops: Array<[number, number]>
  /** Whether the script compares the clock with ARGV[1] and returns `{ 'late' }` after it. */
  comparesDeadline: boolean
}

/** `isProtected`: by redis.pcall, so that the script goes on if Redis refuses it. */
interface Command { name: string, isProtected: boolean }

/** What each function of a library (lua/lib/) does: the reply tags that it returns, and the Redis commands that it runs. */
export type Library = ReadonlyMap<string, { tags: string[], commands: Command[] }>

/** @throws on invalid Lua, with the line */
export function readLibrary (library: string): Library {
  const functions = nodes(luaparse.parse(library, { ranges: true, comments: false }).body).filter(({ type }) => type === 'FunctionDeclaration')
  const known: Map<string, { tags: string[], commands: Command[] }> = new Map()
  for (const declared of functions) {
    const tagsOf = returnedTags(nodes(declared.body), known)
    const tags: string[] = []
    const commands: Command[] = []
    visit(declared, node => {
      if (node.type === 'ReturnStatement') tags.push(...tagsOf(node))
      if (!node.type.endsWith('CallExpression')) return
      const name = nameOf(node.base as LuaNode)
      // Those of functions before it are its own too.
      commands.push(...commandsOf(node, name), ...known.get(name)?.commands ?? [])
    })
    known.set(String((declared.identifier as LuaNode).name), { tags, commands })
  }
  return known
}

/** @param library the functions that it can call @throws on invalid Lua, with the line */
export function readCode (source: string, library: Library = new Map()): LuaCode {
  const chunk = luaparse.parse(source, { ranges: true, comments: false })
  const code: LuaCode = { keys: [], args: [], otherUses: [], commands: [], calls: [], returns: [], loops: [], comparesDeadline: false }
  const body = nodes(chunk.body)
  const tagsOf = returnedTags(body, library)
  // Scripts that run most look it up once: `local call = redis.call`.
  const named = body.find(({ type, variables }) => type === 'LocalStatement' && nodes(variables)[0]!.name === 'call')
  const call = named === undefined ? 'call' : nameOf(nodes(named.init)[0]!)
  visit(chunk, (node, parent) => {
    if (node.type === 'Identifier' && (node.name === 'KEYS' || node.name === 'ARGV')) noteUse(code, node, parent)
    if (node.type.endsWith('CallExpression') || node.type === 'CallStatement') noteCall(code, node, library, call)
    if (/^(For|While|Repeat)/.test(node.type)) code.loops.push(node.range)
    if (node.type === 'IfClause' && isDeadlineCheck(node, body)) code.comparesDeadline = true
    if (node.type === 'ReturnStatement') {
      code.returns.push({ at: node.range[0], tags: tagsOf(node), last: node === body.at(-1) })
    }
  })
  return code
}

function nodes (value: unknown): LuaNode[] {
  return value as LuaNode[]
}

/** Every node below, in source order, with its parent. */
function visit (node: LuaNode, see: (node: LuaNode, parent: LuaNode | undefined) => void, parent?: LuaNode): void {
  see(node, parent)
  for (const child of Object.values(node).flat() as Array<LuaNode | null | undefined>) {
    if (typeof child?.type === 'string') visit(child, see, node)
  }
}

function noteUse (code: LuaCode, node: LuaNode, parent: LuaNode | undefined): void {
  const index = parent?.type === 'IndexExpression' && parent.base === node ? parent.index as LuaNode : undefined
  if (index?.type === 'NumericLiteral') (node.name === 'KEYS' ? code.keys : code.args).push(index.value as number)
  else code.otherUses.push(String(node.name))
}

/** @param named what the script names `call` */
function noteCall (code: LuaCode, call: LuaNode, library: Library, named: string): void {
  if (call.type === 'CallStatement') return
  const given = nameOf(call.base as LuaNode)
  const name = given === 'call' ? named : given
  const own = commandsOf(call, name)
  if (own.length === 0) code.calls.push(name)
  const commands = [...own, ...library.get(name)?.commands ?? []]
  code.commands.push(...commands.map(command => ({ ...command, at: call.range[0] })))
}

/** The command of a redis.call or redis.pcall; none if the call is another one. @param called the function's name */
function commandsOf (call: LuaNode, called: string): Command[] {
  if (called !== 'redis.call' && called !== 'redis.pcall') return []
  const first = nodes(call.arguments)?.[0]
  return [{ name: first?.type === 'StringLiteral' ? textOf(first) : '(made up)', isProtected: called === 'redis.pcall' }]
}

function nameOf (node: LuaNode): string {
  if (node.type === 'Identifier') return String(node.name)
  return node.type === 'MemberExpression' ? `${nameOf(node.base as LuaNode)}.${nameOf(node.identifier as LuaNode)}` : `(${node.type})`
}

function textOf (literal: LuaNode): string {
  return String(literal.raw).slice(1, -1)
}

/** `if clock() > ARGV[1] + 0 then return { 'late' } end`, or with a local that is `clock()`. */
function isDeadlineCheck (clause: LuaNode, body: LuaNode[]): boolean {
  const { condition, body: then } = clause as unknown as { condition: LuaNode | null, body: LuaNode[] }
  if (condition?.type !== 'BinaryExpression' || condition.operator !== '>') return false
  const { left: now, right: deadline } = condition as unknown as { left: LuaNode, right: LuaNode }
  return deadline.operator === '+' && isFirstArgument(deadline.left as LuaNode) && (isClock(now) || body.some(statement => isLocalClock(statement, now))) &&
    then.length === 1 && then[0]!.type === 'ReturnStatement' && returnedTags(body, new Map())(then[0]!).join() === 'late'
}

function isClock (node: LuaNode | undefined): boolean {
  return node?.type === 'CallExpression' && nameOf(node.base as LuaNode) === 'clock'
}

function isLocalClock (statement: LuaNode, variable: LuaNode | undefined): boolean {
  return statement.type === 'LocalStatement' && variable?.type === 'Identifier' &&
    nodes(statement.variables)[0]!.name === variable.name && isClock(nodes(statement.init)[0])
}

function isFirstArgument (node: LuaNode | undefined): boolean {
  return node?.type === 'IndexExpression' && (node.base as LuaNode).name === 'ARGV' && (node.index as LuaNode).value === 1
}

/** The tags that a return's reply can have; `(now)` for a reply that is the time alone. `?` stands for an unknown one. */
function returnedTags (body: LuaNode[], library: Library): (node: LuaNode) => string[] {
  const possible = statusesAt(body)
  return node => {
    const [given, ...more] = nodes(node.arguments)
    return more.length > 0 ? ['?'] : tagsOfReply(given, possible.get(node) ?? ['?'])
  }

  function tagsOfReply (given: LuaNode | undefined, statusHere: readonly string[]): string[] {
    if (body.some(statement => isLocalClock(statement, given))) return ['(now)']
    const reply = tableOf(body, given)
    if (reply !== given) return tagsOfReply(reply, statusHere)
    if (reply?.type === 'LogicalExpression') {
      // `c and x or y`: see tagsOf.
      const { left, right, operator } = reply as unknown as { left: LuaNode, right: LuaNode, operator: string }
      return [...operator === 'or' ? tagsOfReply(left, statusHere) : [], ...tagsOfReply(right, statusHere)]
    }
    if (reply?.type === 'CallExpression') return library.get(nameOf(reply.base as LuaNode))?.tags ?? ['?']
    const [first] = reply?.type === 'TableConstructorExpression' ? nodes(reply.fields) : []
    return first?.type === 'TableValue' ? tagsOf(first.value as LuaNode, statusHere) : ['?']
  }
}

/** The table that a return returns, or the initial value of the local that it returns. Such a local may only get further members later. */
function tableOf (body: LuaNode[], given: LuaNode | undefined): LuaNode | undefined {
  if (given?.type !== 'Identifier') return given
  const locals: LuaNode[] = []
  let tagStays = true
  for (const statement of body) {
    visit(statement, node => {
      const { type, variables } = node
      if (type === 'LocalStatement' && nodes(variables)[0]!.name === given.name) locals.push(node)
      if (type === 'AssignmentStatement' && nodes(variables).some(variable => changesTag(variable, given))) tagStays = false
    })
  }
  return locals.length === 1 && tagStays ? nodes(locals[0]!.init)[0] : undefined
}

/** Whether an assignment replaces the table or its first member. */
function changesTag (variable: LuaNode, table: LuaNode): boolean {
  if (variable.type === 'Identifier') return variable.name === table.name
  const { base, index } = variable as unknown as { base: LuaNode, index: LuaNode | undefined }
  return variable.type === 'IndexExpression' && base.name === table.name && index?.type === 'NumericLiteral' && index.value === 1
}

function tagsOf (node: LuaNode, statusHere: readonly string[]): string[] {
  if (node.type === 'StringLiteral') return [textOf(node)]
  if (node.type === 'Identifier' && node.name === 'status') return [...statusHere]
  if (node.type !== 'LogicalExpression') return ['?']
  const { left, right } = node as unknown as { left: LuaNode, right: LuaNode }
  // `c and x or y`: the condition itself is never the reply, because it is false whenever y is reached.
  if (node.operator === 'and') return tagsOf(right, statusHere)
  return [...tagsOf(left, statusHere), ...tagsOf(right, statusHere)]
}

/** The values that the local `status` can have at each return directly inside a top-level `if`. */
function statusesAt (body: LuaNode[]): Map<LuaNode, readonly string[]> {
  const at = new Map<LuaNode, readonly string[]>()
  let possible: readonly string[] = statuses
  for (const statement of body) {
    if (statement.type !== 'IfStatement') continue
    const [clause] = nodes(statement.clauses)
    const { values, exact } = narrowed(possible, clause!.condition as LuaNode)
    const then = nodes(clause!.body)
    for (const inner of then) if (inner.type === 'ReturnStatement') at.set(inner, values)
    if (exact && then.at(-1)?.type === 'ReturnStatement') possible = possible.filter(status => !values.includes(status))
  }
  return at
}

/** The statuses for which a condition can be true; exact if it is certainly true for them. */
function narrowed (possible: readonly string[], condition: LuaNode): { values: readonly string[], exact: boolean } {
  const { type, operator } = condition
  const { left, right } = condition as unknown as { left: LuaNode, right: LuaNode }
  if (type === 'BinaryExpression' && left.name === 'status' && right.type === 'StringLiteral' && (operator === '==' || operator === '~=')) {
    return { values: possible.filter(status => (status === textOf(right)) === (operator === '==')), exact: true }
  }
  if (type !== 'LogicalExpression') return { values: possible, exact: false }
  const [a, b] = [narrowed(possible, left), narrowed(possible, right)]
  const values = possible.filter(status => operator === 'and'
    ? a.values.includes(status) && b.values.includes(status)
    : a.values.includes(status) || b.values.includes(status))
  return { values, exact: a.exact && b.exact }
}
