import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../../', import.meta.url))
const cache = join(root, '.cache/mutants')
/** What the build makes of one file (tsconfig.json), without looking at others. */
const compilerOptions: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true, rewriteRelativeImportExtensions: true,
}

/**
 * The project in a directory of its own, of which each file is a hard link: so a file is replaced, and never written to. Beside each file of
 * TypeScript is what is made of it, because a process of tests that needs no compiler takes half as long.
 */
export class Copy {
  readonly directory: string

  constructor (name: string) {
    this.directory = join(cache, name)
    this.remove()
    const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8' }).split('\0')
    const built = readdirSync(join(root, 'dist'), { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
    for (const file of [...files.filter(file => file !== ''), ...built.map(({ parentPath, name }) => join(parentPath, name).slice(root.length))]) {
      mkdirSync(join(this.directory, dirname(file)), { recursive: true })
      this.#link(file)
      if (isCompiled(file)) linkSync(compiled(readFileSync(join(root, file), 'utf8')), join(this.directory, compiledTo(file)))
    }
    for (const shared of ['node_modules', '.cache/redis']) {
      mkdirSync(join(this.directory, dirname(shared)), { recursive: true })
      symlinkSync(join(root, shared), join(this.directory, shared))
    }
  }

  /** Makes a change, in what is made of the file too: also in dist/, since some tests start the built service. @returns what takes it back */
  change (file: string, from: string, to: string): () => void {
    const text = readFileSync(join(root, file), 'utf8').replace(from, () => to)
    // It may throw: then nothing is changed yet.
    const code = isCompiled(file) ? compile(text) : undefined
    this.#replace(file, text)
    if (code === undefined) return () => this.#restore(file)
    const [made, built] = [compiledTo(file), compiledTo(file).replace('src/', 'dist/')]
    for (const path of [made, built]) this.#replace(path, code)
    return () => {
      this.#restore(file)
      this.#restore(built)
      this.#replace(made, compile(readFileSync(join(root, file), 'utf8')))
    }
  }

  remove (): void {
    rmSync(this.directory, { recursive: true, force: true })
  }

  #link (path: string): void {
    linkSync(join(root, path), join(this.directory, path))
  }

  #restore (path: string): void {
    rmSync(join(this.directory, path))
    this.#link(path)
  }

  #replace (path: string, text: string): void {
    rmSync(join(this.directory, path))
    writeFileSync(join(this.directory, path), text)
  }
}

function isCompiled (file: string): boolean {
  return /^(?:src|test)\/.*(?<!\.d)\.ts$/.test(file)
}

function compiledTo (file: string): string {
  return file.replace(/\.ts$/, '.js')
}

function compile (text: string): string {
  const { outputText, diagnostics = [] } = ts.transpileModule(text, { compilerOptions, reportDiagnostics: true })
  // A test would fail for that alone.
  if (diagnostics.length > 0) throw new Error(`it can't be compiled: ${ts.flattenDiagnosticMessageText(diagnostics[0]!.messageText, ' ')}`)
  return outputText
}

/** @returns where it is kept: it is the same for all copies, and for later runs */
function compiled (text: string): string {
  const place = join(cache, 'compiled', `${createHash('sha256').update(text).digest('hex')}.js`)
  if (!existsSync(place)) {
    mkdirSync(dirname(place), { recursive: true })
    writeFileSync(place, compile(text))
  }
  return place
}
