import luaparse from 'luaparse'
import type { LuaNode } from 'luaparse'
import { conditionOf, valueOf, valuesOf } from './expressions.ts'
import * as library from './library.ts'
import { Scope } from './scope.ts'
import { Table } from './table.ts'

/**
 * Translates a script into a function of JavaScript, as far as lua/ goes: what it doesn't know it refuses. V8 runs that a hundred times as fast as
 * an interpreter of Lua would.
 */

/** A translated script. `call` and `pcall` are redis.call and redis.pcall. */
export type Program = (keys: Table, args: Table, call: Call, pcall: Call) => unknown
export type Call = (name: string, ...args: unknown[]) => unknown

const own = { one: library.one, many: library.many, isTrue: library.isTrue, num: library.num, str: library.str, less: library.less, atMost: library.atMost, mod: library.mod, length: library.length, index: library.index, Table, withMembers, iterate }

export function translate (source: string): Program {
  // Lua is the server's, the strings' characters are bytes.
  const chunk = luaparse.parse(source.replace(/^#!.*/, ''), { ranges: true, comments: false, luaVersion: '5.1', encodingMode: 'pseudo-latin1' })
  const scope = new Scope()
  const body = blockOf(chunk.body as LuaNode[], scope)
  const given = [...scope.functions].filter(name => name !== 'redis.call' && name !== 'redis.pcall')
  const functions = given.map(name => library.functions[name])
  const missing = given.findIndex((_, at) => functions[at] === undefined)
  if (missing !== -1) throw new Error(`${given[missing]} isn't translated`)
  const text = `"use strict"; return (KEYS, ARGV, redis_call, redis_pcall) => {${declared(scope)}${body}}`
  const make = new Function(...Object.keys(own), ...given.map(name => name.replace('.', '_')), text) as (...given: unknown[]) => Program // eslint-disable-line no-new-func -- the repository's own scripts
  return make(...Object.values(own), ...functions)
}

function declared ({ temporaries }: Scope): string {
  return temporaries.length === 0 ? '' : `let ${temporaries.join(', ')};\n`
}

/** @param scope the block's own */
function blockOf (statements: readonly LuaNode[], scope: Scope): string {
  return statements.map(statement => statementOf(statement, scope)).join('\n')
}

function statementOf (node: LuaNode, scope: Scope): string {
  switch (node.type) {
    case 'LocalStatement': return localOf(node.variables as LuaNode[], node.init as LuaNode[], scope)
    case 'AssignmentStatement': return assignmentOf(node.variables as LuaNode[], node.init as LuaNode[], scope)
    case 'CallStatement': return `${valueOf(node.expression as LuaNode, scope)};`
    case 'FunctionDeclaration': return functionOf(node, scope)
    case 'ReturnStatement': return returnOf(node.arguments as LuaNode[], scope)
    case 'BreakStatement': return 'break;'
    case 'IfStatement': return (node.clauses as LuaNode[]).map(clause => {
      const inner = new Scope(scope, false)
      const condition = clause.type === 'ElseClause' ? '' : `if (${conditionOf(clause.condition as LuaNode, scope)}) `
      return `${condition}{${blockOf(clause.body as LuaNode[], inner)}}`
    }).join(' else ')
    case 'WhileStatement': return `while (${conditionOf(node.condition as LuaNode, scope)}) {${blockOf(node.body as LuaNode[], new Scope(scope, false))}}`
    case 'RepeatStatement': {
      // The condition sees what the body declares.
      const inner = new Scope(scope, false)
      const body = blockOf(node.body as LuaNode[], inner)
      return `while (true) {${body}\nif (${conditionOf(node.condition as LuaNode, inner)}) break;}`
    }
    case 'ForNumericStatement': {
      const inner = new Scope(scope, false)
      const [start, end, step] = [node.start, node.end, node.step].map(part => part === null ? '1' : valueOf(part as LuaNode, scope))
      const name = inner.declare((node.variable as LuaNode).name as string)
      const last = scope.temporary()
      return `${last} = ${end}; for (let ${name} = ${start}; ${name} <= ${last}; ${name} += ${step}) {${blockOf(node.body as LuaNode[], inner)}}`
    }
    case 'ForGenericStatement': return forOf(node, scope)
    default: throw new Error(`${node.type} isn't translated`)
  }
}

function localOf (variables: readonly LuaNode[], init: readonly LuaNode[], scope: Scope): string {
  const names = variables.map(({ name }) => name as string)
  if (init.length === names.length || init.length === 0) {
    const values = init.map(node => valueOf(node, scope))
    return `let ${names.map((name, at) => `${scope.declare(name)} = ${values[at] ?? 'undefined'}`).join(', ')};`
  }
  const values = valuesOf(init, scope)
  return `let [${names.map(name => scope.declare(name)).join(', ')}] = [${values}];`
}

function assignmentOf (variables: readonly LuaNode[], init: readonly LuaNode[], scope: Scope): string {
  if (variables.length === 1 && init.length === 1) return assigned(variables[0]!, valueOf(init[0]!, scope), scope)
  // Lua finds out where to assign before it assigns anything.
  const keys = variables.map(variable => variable.type === 'Identifier' ? null : scope.temporary())
  const found = variables.map((variable, at) => keys[at] === null ? '' : `${keys[at]} = ${keyOf(variable, scope)}; `)
  const values = scope.temporary()
  return `${found.join('')}${values} = [${valuesOf(init, scope)}]; ${variables.map((variable, at) => assigned(variable, `${values}[${at}]`, scope, keys[at] ?? undefined)).join(' ')}`
}

function assigned (variable: LuaNode, value: string, scope: Scope, key?: string): string {
  if (variable.type === 'Identifier') {
    if (!scope.has(variable.name as string)) throw new Error(`${variable.name as string} is global`)
    return `${scope.nameOf(variable.name as string)} = ${value};`
  }
  return `${valueOf(variable.base as LuaNode, scope)}.set(${key ?? keyOf(variable, scope)}, ${value});`
}

function keyOf (variable: LuaNode, scope: Scope): string {
  return variable.type === 'IndexExpression' ? valueOf(variable.index as LuaNode, scope) : JSON.stringify((variable.identifier as LuaNode).name)
}

function functionOf (node: LuaNode, scope: Scope): string {
  const name = scope.declare((node.identifier as LuaNode).name as string)
  const inner = new Scope(scope)
  const parameters = (node.parameters as LuaNode[]).map(parameter => inner.declare(parameter.name as string))
  const body = blockOf(node.body as LuaNode[], inner)
  return `function ${name} (${parameters.join(', ')}) {${declared(inner)}${body}}`
}

function returnOf (values: readonly LuaNode[], scope: Scope): string {
  if (values.length === 0) return 'return [];'
  if (values.length === 1 && values[0]!.type !== 'CallExpression') return `return ${valueOf(values[0]!, scope)};`
  return `return [${valuesOf(values, scope)}];`
}

function forOf (node: LuaNode, scope: Scope): string {
  const inner = new Scope(scope, false)
  const [iterator] = node.iterators as LuaNode[]
  const called = iterator!.base as LuaNode
  const names = (node.variables as LuaNode[]).map(({ name }) => inner.declare(name as string)).join(', ')
  const isList = called.type === 'Identifier' && called.name === 'ipairs'
  const over = isList ? `${valueOf((iterator!.arguments as LuaNode[])[0]!, scope)}.list.entries()` : `iterate(${valueOf(iterator!, scope)})`
  const first = isList ? `if (${names.split(', ')[1]} === undefined) break; ${names.split(', ')[0]}++;` : ''
  return `for (let [${names}] of ${over}) {${first}${blockOf(node.body as LuaNode[], inner)}}`
}

/** What an iterator gives, until it gives nil. */
function * iterate (next: () => unknown): Generator<unknown[]> {
  for (let given = library.many(next()); given[0] !== undefined; given = library.many(next())) yield given
}

function withMembers (table: Table, members: Array<[unknown, unknown]>): Table {
  for (const [key, value] of members) table.set(key, value)
  return table
}
