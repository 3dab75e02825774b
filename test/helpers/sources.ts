import { readFileSync, readdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/**
 * One file's import of another: its path in src/, or in brackets an expression that is only known at run time, and the names that it uses,
 * `*` for all. Packages are left out.
 */
export interface Import { of: string, typeOnly: boolean, names: string[] }

export interface Source {
  /** The path in src/, with slashes. */
  path: string
  lines: number
  imports: Import[]
  /** The packages that it imports. */
  packages: string[]
  readsEnvironment: boolean
  /** The names that it exports. */
  exports: string[]
  /** The names that it defines at its top level. */
  defines: string[]
  /** Of each object literal, the names of its members; what is spread is `...name`. */
  literals: string[][]
  /** It reads a member `scopes` of something: of a caller, or of a key's record. */
  readsScopes: boolean
  /** The methods that it calls, each after the last name of what it is called on: `lists.page` for `this.lists.page()`. */
  calls: string[]
  /** Every string in it, and every template with its expressions as ${}. */
  texts: string[]
}

const root = fileURLToPath(new URL('../../', import.meta.url))

/** All of a folder but what is built or installed there. Paths begin in src/: those of other folders with `../`. */
export function readSources (folder = 'src'): Source[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && /\.m?[jt]s$/.test(entry.name))
    .map(entry => join(entry.parentPath, entry.name).slice(root.length).replaceAll('\\', '/'))
    .filter(file => !/\/node_modules\/|^src\/clients\/typescript\/dist\//.test(file))
    .map(file => parseSource(posix.relative('src', file), readFileSync(join(root, file), 'utf8')))
    .sort((a, b) => a.path < b.path ? -1 : 1)
}

export function parseSource (path: string, text: string): Source {
  const parsed = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true)
  const source: Source = { path, lines: text.trimEnd().split('\n').length, imports: [], packages: [], readsEnvironment: false, readsScopes: false, exports: [], defines: [], literals: [], calls: [], texts: [] }
  const see = (node: ts.Node): void => {
    const imported = importOf(node)
    if (imported !== undefined) {
      if (/^[./#(]|^file:/.test(imported.of)) source.imports.push({ ...imported, of: resolve(path, imported.of) })
      else source.packages.push(imported.of)
    }
    if (isEnvironment(node) || /^(node:)?process$/.test(imported?.of ?? '')) source.readsEnvironment = true
    if (ts.isObjectLiteralExpression(node)) source.literals.push(node.properties.map(memberOf))
    if (isScopes(node)) source.readsScopes = true
    if (ts.isCallExpression(node)) source.calls.push(...calledBy(node))
    if (ts.isStringLiteralLike(node)) source.texts.push(node.text)
    if (ts.isTemplateExpression(node)) source.texts.push([node.head, ...node.templateSpans.map(span => span.literal)].map(piece => piece.text).join('${}'))
    ts.forEachChild(node, see)
  }
  see(parsed)
  for (const statement of parsed.statements) {
    const names = namesIn(statement)
    source.defines.push(...names)
    if (ts.canHaveModifiers(statement) && statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) source.exports.push(...names)
    if (ts.isExportDeclaration(statement)) source.exports.push(...exportedBy(statement, ({ name }) => name))
  }
  return source
}

/** As in src/, where test/ and bench/ are `../test` and `../bench`. */
function resolve (from: string, specifier: string): string {
  return specifier.startsWith('.') ? posix.relative('src', posix.join('src', posix.dirname(from), specifier)) : specifier
}

/** import, export … from, import() and require() alike, and a type's import(). */
function importOf (node: ts.Node): Import | undefined {
  if (ts.isImportDeclaration(node)) return { of: textOf(node.moduleSpecifier), typeOnly: isTypeOnly(node.importClause), names: importedBy(node.importClause) }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
    return { of: textOf(node.moduleSpecifier), typeOnly: node.isTypeOnly, names: exportedBy(node, ({ propertyName, name }) => propertyName ?? name) }
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return { of: textOf(node.argument.literal), typeOnly: true, names: [node.qualifier?.getText().split('.')[0] ?? '*'] }
  }
  if (!ts.isCallExpression(node)) return undefined
  const isCallOfImport = node.expression.kind === ts.SyntaxKind.ImportKeyword || node.expression.getText() === 'require'
  return isCallOfImport && node.arguments[0] !== undefined ? { of: textOf(node.arguments[0]), typeOnly: false, names: readFrom(node) } : undefined
}

function importedBy (clause: ts.ImportClause | undefined): string[] {
  const list = clause?.namedBindings
  const named = list === undefined ? [] : ts.isNamedImports(list) ? list.elements.map(({ propertyName, name }) => (propertyName ?? name).text) : ['*']
  return clause?.name === undefined ? named : ['default', ...named]
}

/** The names of `export { … }`: as this file has them, or as others see them. */
function exportedBy ({ exportClause }: ts.ExportDeclaration, nameOf: (specifier: ts.ExportSpecifier) => ts.ModuleExportName): string[] {
  return exportClause !== undefined && ts.isNamedExports(exportClause) ? exportClause.elements.map(each => nameOf(each).text) : ['*']
}

/** The names that are read of what import() gives, in place or taken apart; else `*`. */
function readFrom (call: ts.Node): string[] {
  let { parent } = call
  while (ts.isAwaitExpression(parent) || ts.isParenthesizedExpression(parent)) parent = parent.parent
  if (ts.isPropertyAccessExpression(parent)) return [parent.name.text]
  if (!ts.isVariableDeclaration(parent) || !ts.isObjectBindingPattern(parent.name)) return ['*']
  return parent.name.elements.map(({ propertyName, name }) => (propertyName ?? name).getText())
}

/** The names that a statement defines. */
function namesIn (statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.flatMap(({ name }) => namesOf(name))
  const isNamed = ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement) || ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)
  return isNamed ? [statement.name?.text ?? 'default'] : []
}

function namesOf (name: ts.BindingName): string[] {
  return ts.isIdentifier(name) ? [name.text] : name.elements.flatMap(element => ts.isBindingElement(element) ? namesOf(element.name) : [])
}

function isTypeOnly (clause: ts.ImportClause | undefined): boolean {
  if (clause === undefined || clause.isTypeOnly) return clause !== undefined
  const names = clause.namedBindings
  return clause.name === undefined && names !== undefined && ts.isNamedImports(names) && names.elements.every(element => element.isTypeOnly)
}

/** An import that isn't a plain string can't be resolved, so no rule allows it. */
function textOf (node: ts.Node): string {
  return ts.isStringLiteralLike(node) ? node.text : `(${node.getText()})`
}

function memberOf (member: ts.ObjectLiteralElementLike): string {
  return ts.isSpreadAssignment(member) ? `...${member.expression.getText()}` : member.name.getText()
}

/** Finds `x.scopes`, `x['scopes']` and `{ scopes } = x`. */
function isScopes (node: ts.Node): boolean {
  if (ts.isPropertyAccessExpression(node)) return node.name.text === 'scopes'
  if (ts.isElementAccessExpression(node)) return ts.isStringLiteralLike(node.argumentExpression) && node.argumentExpression.text === 'scopes'
  return ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent) && (node.propertyName ?? node.name).getText() === 'scopes'
}

function calledBy ({ expression }: ts.CallExpression): string[] {
  if (!ts.isPropertyAccessExpression(expression)) return []
  const { expression: on, name } = expression
  const last = ts.isPropertyAccessExpression(on) ? on.name : on
  return ts.isIdentifier(last) || ts.isPrivateIdentifier(last) ? [`${last.text}.${name.text}`] : []
}

/** Finds `process.env`, `process['env']`, `{ env } = process`: any use of process except for naming another member. */
function isEnvironment (node: ts.Node): boolean {
  if (!ts.isIdentifier(node) || node.text !== 'process') return false
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node && parent.name.text === 'env'
  if (ts.isElementAccessExpression(parent)) return parent.expression === node
  return ts.isVariableDeclaration(parent) && parent.initializer === node
}
