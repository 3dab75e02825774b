/**
 * Compiles src/, test/ and bench/ file by file into .cache/compiled before a test run. Compiling at import (tsx) would cost each of the
 * over a hundred test files 2.4 s of CPU, most of it because all imports, node_modules included, go through a loader.
 *
 * `import.meta` stays that of the source file, so that paths relative to it still work.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { transform } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiled = join(root, '.cache/compiled')

/** Imports of the project's own files, static and dynamic, as esbuild prints them: in double quotes, which our strings with imports don't use. */
const ownImport = /((?:\bfrom|\bimport)\s*\(?\s*"\.[^"]*)\.ts(")/g

/** The compiled file of a test file. @param path below test/ */
export function compiledTest (path: string): string {
  return join(compiled, 'test', path.replace(/\.ts$/, '.js'))
}

/** Compiles all files, and replaces the previous output. */
export async function compileAll (): Promise<void> {
  await rm(compiled, { recursive: true, force: true })
  const files = ['src', 'test', 'bench'].flatMap(folder => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.ts') && !path.endsWith('.d.ts')).map(path => join(folder, path)))
  await Promise.all(files.map(compile))
}

async function compile (path: string): Promise<void> {
  const source = join(root, path)
  const { code } = await transform(readFileSync(source, 'utf8'), {
    loader: 'ts',
    format: 'esm',
    target: 'node20',
    sourcefile: source,
    sourcemap: 'inline',
    sourcesContent: false,
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(source).href), 'import.meta.dirname': JSON.stringify(dirname(source)) },
  })
  const to = join(compiled, path.replace(/\.ts$/, '.js'))
  await mkdir(dirname(to), { recursive: true })
  await writeFile(to, code.replace(ownImport, '$1.js$2'))
}
