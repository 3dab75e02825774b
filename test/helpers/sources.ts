import { readFileSync, readdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** One file's import of another: its path in src/, or in brackets an expression that is only known at run time. Packages are left out. */
export interface Import { of: string, typeOnly: boolean }

export interface Source {
  /** The path in src/, with slashes. */
  path: string
  lines: number
  imports: Import[]
  /** The packages that it imports. */
  packages: string[]
  readsEnvironment: boolean
  /** The names that it imports or exports by a list. */
  names: string[]
  /** Of each object literal, the names of its members; what is spread is `...name`. */
  literals: string[][]
  /** It reads a member `scopes` of something: of a caller, or of a key's record. */
  readsScopes: boolean
  /** Every string in it, and every template with its expressions as ${}. */
  texts: string[]
}

const root = fileURLToPath(new URL('../../src/', import.meta.url))

/** All of src/ but what is built there. */
export function readSources (): Source[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && /\.m?[jt]s$/.test(entry.name))
    .map(entry => join(entry.parentPath, entry.name))
    .filter(file => !file.startsWith(join(root, 'clients/typescript/dist/')))
    .map(file => parseSource(file.slice(root.length).replaceAll('\\', '/'), readFileSync(file, 'utf8')))
    .sort((a, b) => a.path < b.path ? -1 : 1)
}

export function parseSource (path: string, text: string): Source {
  const source: Source = { path, lines: text.trimEnd().split('\n').length, imports: [], packages: [], readsEnvironment: false, readsScopes: false, names: [], literals: [], texts: [] }
  const see = (node: ts.Node): void => {
    const imported = importOf(node)
    if (imported !== undefined) {
      if (/^[./#(]|^file:/.test(imported.of)) source.imports.push({ ...imported, of: resolve(path, imported.of) })
      else source.packages.push(imported.of)
    }
    if (isEnvironment(node) || /^(node:)?process$/.test(imported?.of ?? '')) source.readsEnvironment = true
    if (ts.isImportSpecifier(node) || ts.isExportSpecifier(node)) source.names.push((node.propertyName ?? node.name).getText())
    if (ts.isObjectLiteralExpression(node)) source.literals.push(node.properties.map(memberOf))
    if (isScopes(node)) source.readsScopes = true
    if (ts.isStringLiteralLike(node)) source.texts.push(node.text)
    if (ts.isTemplateExpression(node)) source.texts.push([node.head, ...node.templateSpans.map(span => span.literal)].map(piece => piece.text).join('${}'))
    ts.forEachChild(node, see)
  }
  see(ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true))
  return source
}

function resolve (from: string, specifier: string): string {
  return specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : specifier
}

/** import, export … from, import() and require() alike, and a type's import(). */
function importOf (node: ts.Node): Import | undefined {
  if (ts.isImportDeclaration(node)) return { of: textOf(node.moduleSpecifier), typeOnly: isTypeOnly(node.importClause) }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) return { of: textOf(node.moduleSpecifier), typeOnly: node.isTypeOnly }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) return { of: textOf(node.argument.literal), typeOnly: true }
  if (!ts.isCallExpression(node)) return undefined
  const isCallOfImport = node.expression.kind === ts.SyntaxKind.ImportKeyword || node.expression.getText() === 'require'
  return isCallOfImport && node.arguments[0] !== undefined ? { of: textOf(node.arguments[0]), typeOnly: false } : undefined
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

/** Finds `process.env`, `process['env']`, `{ env } = process`: any use of process except for naming another member. */
function isEnvironment (node: ts.Node): boolean {
  if (!ts.isIdentifier(node) || node.text !== 'process') return false
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node && parent.name.text === 'env'
  if (ts.isElementAccessExpression(parent)) return parent.expression === node
  return ts.isVariableDeclaration(parent) && parent.initializer === node
}
