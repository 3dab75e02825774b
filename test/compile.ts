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
import { build, transform } from 'esbuild'
import { compiled } from './compiled.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Imports of the project's own files, static and dynamic, as esbuild prints them: in double quotes, which our strings with imports don't use. */
const ownImport = /((?:\bfrom|\bimport)\s*\(?\s*"\.[^"]*)\.ts(")/g

/**
 * Packages of hundreds of small modules, which every test file loads: bundled, they are one file each. They lie where
 * what is compiled finds them before the ones that are installed.
 */
const bundled = {
  '@sinclair/typebox': "export * from '@sinclair/typebox'",
  // Of this scope, which tap leaves out of the stacks that it shows.
  '@tapjs/bundle': "export * from 'tap'\nexport { default } from 'tap'",
}

/** Compiles all files, and replaces the previous output. */
export async function compileAll (): Promise<void> {
  await rm(compiled, { recursive: true, force: true })
  const files = ['src', 'test', 'bench'].flatMap(folder => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.ts') && !path.endsWith('.d.ts')).map(path => join(folder, path)))
  await Promise.all([
    ...files.map(compile),
    ...Object.entries(bundled).map(bundle),
    writePackage('tap', "export * from '@tapjs/bundle'\nexport { default } from '@tapjs/bundle'"),
  ])
}

async function bundle ([name, contents]: [name: string, contents: string]): Promise<void> {
  const { outputFiles: [file] } = await build({
    stdin: { contents, resolveDir: root },
    write: false,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'error',
    // Some of what is in it is CommonJS, which asks for Node's own modules.
    banner: { js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url)" },
    plugins: [{
      name: 'import.meta.url stays that of the module',
      setup: ({ onLoad }) => onLoad({ filter: /\.m?js$/ }, ({ path }) => {
        const contents = readFileSync(path, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
        return { contents, loader: 'js' }
      }),
    }],
  })
  await writePackage(name, file!.text)
}

async function writePackage (name: string, code: string): Promise<void> {
  const folder = join(compiled, 'node_modules', name)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'index.js'), code)
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name, type: 'module', exports: './index.js' }))
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
