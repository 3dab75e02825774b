import type { LuaNode } from 'luaparse'
import type { Scope } from './scope.ts'

/** Lua's expressions as JavaScript. */

/** What gives one value for certain, so that nothing needs to pick the first. */
const single = new Set(['tonumber', 'type', 'string.sub', 'string.format', 'string.char', 'math.floor', 'math.min', 'math.max', 'redis.sha1hex', 'redis.call'])
const arithmetic = new Set(['+', '-', '*', '/'])

/** An expression that gives one value. */
export function valueOf (node: LuaNode, scope: Scope): string {
  const text = textOf(node, scope)
  return isSingle(node, scope) ? text : `one(${text})`
}

function isSingle (node: LuaNode, scope: Scope): boolean {
  return node.type !== 'CallExpression' || single.has(nameOf(node.base as LuaNode, scope) ?? '')
}

/** A list of expressions as the elements of an array: the last one may give several values, or none. */
export function valuesOf (nodes: readonly LuaNode[], scope: Scope): string {
  return nodes.map((node, at) => {
    const text = textOf(node, scope)
    return isSingle(node, scope) ? text : at < nodes.length - 1 ? `one(${text})` : `...many(${text})`
  }).join(', ')
}

/** An expression as a condition. */
export function conditionOf (node: LuaNode, scope: Scope): string {
  const { operator } = node
  const [left, right] = [node.left as LuaNode, node.right as LuaNode]
  if (node.type === 'LogicalExpression') return `(${conditionOf(left, scope)} ${operator === 'and' ? '&&' : '||'} ${conditionOf(right, scope)})`
  if (operator === 'not' || (node.type === 'BinaryExpression' && ['==', '~=', '<', '>', '<=', '>='].includes(operator as string))) return textOf(node, scope)
  return `isTrue(${valueOf(node, scope)})`
}

/** An expression that may give several values, as Lua's functions do. */
export function textOf (node: LuaNode, scope: Scope): string {
  switch (node.type) {
    case 'StringLiteral':
    case 'BooleanLiteral': return JSON.stringify(node.value)
    case 'NumericLiteral': return `${node.value as number}`
    case 'NilLiteral': return 'undefined'
    case 'Identifier': return scope.nameOf(node.name as string)
    case 'MemberExpression': return nameOf(node, scope) === undefined ? `index(${valueOf(node.base as LuaNode, scope)}, ${JSON.stringify((node.identifier as LuaNode).name)})` : scope.functionOf(nameOf(node, scope)!)
    case 'IndexExpression': return `index(${valueOf(node.base as LuaNode, scope)}, ${valueOf(node.index as LuaNode, scope)})`
    case 'CallExpression': return `${textOf(node.base as LuaNode, scope)}(${valuesOf(node.arguments as LuaNode[], scope)})`
    case 'TableConstructorExpression': return tableOf(node.fields as LuaNode[], scope)
    case 'UnaryExpression': return unaryOf(node, scope)
    case 'BinaryExpression': return binaryOf(node, scope)
    case 'LogicalExpression': {
      const kept = scope.temporary()
      const [left, right] = [valueOf(node.left as LuaNode, scope), valueOf(node.right as LuaNode, scope)]
      return node.operator === 'and' ? `(isTrue(${kept} = ${left}) ? ${right} : ${kept})` : `(isTrue(${kept} = ${left}) ? ${kept} : ${right})`
    }
    default: throw new Error(`${node.type} isn't translated`)
  }
}

/** The name of a function of Lua or Redis; undefined for anything else. */
function nameOf (node: LuaNode, scope: Scope): string | undefined {
  if (node.type === 'Identifier') return scope.has(node.name as string) ? undefined : node.name as string
  const base = node.base as LuaNode | undefined
  if (node.type !== 'MemberExpression' || base?.type !== 'Identifier' || scope.has(base.name as string)) return undefined
  return `${base.name as string}.${(node.identifier as LuaNode).name as string}`
}

function unaryOf (node: LuaNode, scope: Scope): string {
  const argument = node.argument as LuaNode
  switch (node.operator) {
    case 'not': return `!${conditionOf(argument, scope)}`
    case '#': return `length(${valueOf(argument, scope)})`
    default: return `-${numberOf(argument, scope)}`
  }
}

function binaryOf (node: LuaNode, scope: Scope): string {
  const [left, right] = [node.left as LuaNode, node.right as LuaNode]
  const operator = node.operator as string
  if (arithmetic.has(operator)) return `(${numberOf(left, scope)} ${operator} ${numberOf(right, scope)})`
  if (operator === '..') return `(${stringOf(left, scope)} + ${stringOf(right, scope)})`
  if (operator === '%') return `mod(${numberOf(left, scope)}, ${numberOf(right, scope)})`
  if (operator === '^') return `(${numberOf(left, scope)} ** ${numberOf(right, scope)})`
  const [one, other] = [valueOf(left, scope), valueOf(right, scope)]
  switch (operator) {
    case '==': return `(${one} === ${other})`
    case '~=': return `(${one} !== ${other})`
    case '<': return `less(${one}, ${other})`
    case '>': return `less(${other}, ${one})`
    case '<=': return `atMost(${one}, ${other})`
    case '>=': return `atMost(${other}, ${one})`
    default: throw new Error(`${operator} isn't translated`)
  }
}

function numberOf (node: LuaNode, scope: Scope): string {
  const isNumber = node.type === 'NumericLiteral' || (node.type === 'BinaryExpression' && arithmetic.has(node.operator as string))
  return isNumber ? textOf(node, scope) : `num(${valueOf(node, scope)})`
}

function stringOf (node: LuaNode, scope: Scope): string {
  const isString = node.type === 'StringLiteral' || (node.type === 'BinaryExpression' && node.operator === '..')
  return isString ? textOf(node, scope) : `str(${valueOf(node, scope)})`
}

function tableOf (fields: readonly LuaNode[], scope: Scope): string {
  const listed = fields.filter(({ type }) => type === 'TableValue').map(({ value }) => value as LuaNode)
  const named = fields.filter(({ type }) => type !== 'TableValue')
  const list = `new Table([${valuesOf(listed, scope)}])`
  if (named.length === 0) return list
  const pairs = named.map(({ key, value }) => {
    const name = (key as LuaNode).type === 'Identifier' ? JSON.stringify((key as LuaNode).name) : valueOf(key as LuaNode, scope)
    return `[${name}, ${valueOf(value as LuaNode, scope)}]`
  })
  return `withMembers(${list}, [${pairs.join(', ')}])`
}
