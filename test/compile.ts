/**
 * Compiles src/, test/ and bench/ file by file into .cache/compiled before a test run. Compiling at import (tsx) would cost each of the
 * over a hundred test files 2.4 s of CPU, most of it because all imports, node_modules included, go through a loader.
 *
 * `import.meta` stays that of the source file, so that paths relative to it still work.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, transform } from 'esbuild'
import type { BuildOptions } from 'esbuild'
import { compiled } from './compiled.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const requireHere = createRequire(import.meta.url)

/** Imports of the project's own files, static and dynamic, as esbuild prints them: in double quotes, which our strings with imports don't use. */
const ownImport = /((?:\bfrom|\bimport)\s*\(?\s*"\.[^"]*)\.ts(")/g

/**
 * The service's packages, over a thousand small modules that nearly every test file loads: bundled, they are a few files without source maps,
 * which Node would read. They lie where what is compiled finds them before the ones that are installed. What several of them use is there once
 * (esbuild's splitting), so that classes and symbols are the same for all of them.
 */
const bundled = {
  esm: [
    '@fastify/type-provider-typebox', '@modelcontextprotocol/server', '@modelcontextprotocol/server/validators/ajv', '@opentelemetry/api',
    '@sinclair/typebox', 'commander', 'lru-cache',
  ],
  commonJs: [
    '@fastify/bearer-auth', '@fastify/cookie', '@fastify/helmet', '@fastify/rate-limit', '@fastify/static', '@fastify/swagger',
    '@fastify/swagger-ui', 'ajv', 'ajv/dist/2020.js', 'cluster-key-slot', 'fastify', 'ghtml', 'ioredis', 'ipaddr.js', 'pino', 'prom-client', 'standardwebhooks',
  ],
} as const

/** Compiles all files, and replaces the previous output. */
export async function compileAll (): Promise<void> {
  await rm(compiled, { recursive: true, force: true })
  const files = ['src', 'test', 'bench'].flatMap(folder => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.ts') && !path.endsWith('.d.ts')).map(path => join(folder, path)))
  await Promise.all([...files.map(compile), bundleTap(), bundlePackages()])
}

/** By a name of its own scope, which tap leaves out of the stacks that it shows. */
async function bundleTap (): Promise<void> {
  await bundle({ '@tapjs/bundle': "export * from 'tap'\nexport { default } from 'tap'" }, { splitting: false })
  const folder = join(compiled, 'node_modules/tap')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'index.js'), "export * from '@tapjs/bundle'\nexport { default } from '@tapjs/bundle'")
  await writeManifest('tap', ['tap'])
}

async function bundlePackages (): Promise<void> {
  await bundle(Object.fromEntries([
    ...bundled.esm.map(name => [name, `export * from '${name}'`]),
    ...bundled.commonJs.map(name => [name, entryOf(name)]),
  ]), { splitting: true, chunkNames: '.shared/[hash]' })
}

/** @param entries the code of each thing to import, by its name */
async function bundle (entries: Record<string, string>, options: BuildOptions): Promise<void> {
  const names = Object.keys(entries)
  await build({
    entryPoints: names.map(name => ({ in: `entry:${name}`, out: fileOf(name).replace(/\.js$/, '') })),
    outdir: join(compiled, 'node_modules'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minifyWhitespace: true,
    logLevel: 'error',
    // Some of what is in it is CommonJS, which asks for Node's own modules.
    banner: { js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url)" },
    plugins: [{
      name: 'each module finds what lies beside it',
      setup ({ onLoad, onResolve }) {
        onResolve({ filter: /^entry:/ }, ({ path }) => ({ path: path.slice('entry:'.length), namespace: 'entry' }))
        onLoad({ filter: /.*/, namespace: 'entry' }, ({ path }) => ({ contents: entries[path]!, resolveDir: root }))
        onLoad({ filter: /\.[cm]?js$/ }, ({ path }) => ({ contents: inItsPlace(path), loader: 'js' }))
      },
    }],
    ...options,
  })
  const packages = new Set(names.map(packageOf))
  await Promise.all([...packages].map(of => writeManifest(of, names.filter(name => packageOf(name) === of))))
}

/** A CommonJS package as a module, with all that it exports by name. */
function entryOf (name: string): string {
  const names = Object.keys(requireHere(name) as object).filter(key => /^[a-z_$][\w$]*$/i.test(key) && key !== 'default')
  return `const whole = require('${name}')\nexport default whole\nexport const { ${names.join(', ')} } = whole`
}

/** A package's code, with its own place in it. Fastify's serializers are made once for each schema (helpers/compiled-schemas.ts). */
function inItsPlace (path: string): string {
  const places: Record<string, string> = { 'import.meta.url': pathToFileURL(path).href, __dirname: dirname(path), __filename: path }
  const code = readFileSync(path, 'utf8')
  const isSerializer = path.endsWith('@fastify/fast-json-stringify-compiler/standalone.js')
  return (isSerializer ? code.replace("require('fast-json-stringify')", "(build => globalThis.serializerOf?.(build) ?? build)(require('fast-json-stringify'))") : code).replaceAll(/\bimport\.meta\.url\b|\b__dirname\b|\b__filename\b/g, name => JSON.stringify(places[name]))
}

function packageOf (name: string): string {
  return name.split('/').slice(0, name.startsWith('@') ? 2 : 1).join('/')
}

/** Where the bundle of something that can be imported lies, below node_modules. */
function fileOf (name: string): string {
  return name === packageOf(name) ? `${name}/index.js` : name.endsWith('.js') ? name : `${name}.js`
}

/** @param names all that can be imported of a package */
async function writeManifest (of: string, names: readonly string[]): Promise<void> {
  const exports = Object.fromEntries(names.map(name => [`.${name.slice(of.length)}`, `.${fileOf(name).slice(of.length)}`]))
  await writeFile(join(compiled, 'node_modules', of, 'package.json'), JSON.stringify({ name: of, type: 'module', exports }))
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
