// Packs the Python client, of the version in package.json, into a wheel: a zip of the package and of files that
// describe it (https://packaging.python.org/en/latest/specifications/binary-distribution-format/). The same sources
// make the same bytes on any machine: times and order are fixed, and nothing is compressed, since compressors differ.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Writes the wheel into a folder, in the place of an older one. */
export function writeWheel (folder) {
  const version = pythonVersion(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version)
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(folder)) if (name.endsWith('.whl')) rmSync(join(folder, name))
  writeFileSync(join(folder, `agent_handoff-${version}-py3-none-any.whl`), zip(wheel(version)))
}

/** As Python writes it: 1.2.3-rc.4 is 1.2.3rc4 there. */
function pythonVersion (version) {
  const [, release, kind, number] = /^(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.(\d+))?$/.exec(version) ?? []
  if (release === undefined) throw new Error(`the version ${version} has no form in Python`)
  const kinds = { alpha: 'a', beta: 'b', rc: 'rc' }
  return kind === undefined ? release : `${release}${kinds[kind]}${number}`
}

function wheel (version) {
  const from = join(root, 'src/clients/python/agent_handoff')
  const sources = readdirSync(from).filter(name => /\.pyi?$|^py\.typed$/.test(name)).sort()
  const info = `agent_handoff-${version}.dist-info`
  const files = [
    ...sources.map(name => ({ name: `agent_handoff/${name}`, content: readFileSync(join(from, name)) })),
    { name: `${info}/LICENSE`, content: readFileSync(join(root, 'src/clients/typescript/LICENSE')) },
    text(`${info}/METADATA`, [
      'Metadata-Version: 2.1', 'Name: agent-handoff', `Version: ${version}`,
      'Summary: Client of the Agent Handoff Service: pass a task from one agent to another, catch it exactly once, ' +
      'report it done.',
      'License: MIT', 'License-File: LICENSE', 'Requires-Python: >=3.10', 'Classifier: Typing :: Typed',
      'Provides-Extra: verify', 'Requires-Dist: cryptography>=38; extra == "verify"',
    ]),
    text(`${info}/WHEEL`, [
      'Wheel-Version: 1.0', 'Generator: agent-handoff', 'Root-Is-Purelib: true', 'Tag: py3-none-any',
    ]),
  ]
  const record = `${info}/RECORD`
  const hashed = files.map(({ name, content }) =>
    `${name},sha256=${createHash('sha256').update(content).digest('base64url')},${content.length}`)
  return [...files, text(record, [...hashed, `${record},,`])]
}

function text (name, lines) {
  return { name, content: Buffer.from(`${lines.join('\n')}\n`) }
}

/** A zip without compression, whose times are the oldest that it can say. */
function zip (files) {
  const [parts, directory] = [[], []]
  let offset = 0
  for (const { name, content } of files) {
    const path = Buffer.from(name)
    // What an entry and its place in the directory have in common: zip 2.0, names in UTF-8, 1980-01-01.
    const common = numbers([2, 20], [2, 0x800], [2, 0], [2, 0], [2, 0x21], [4, crc32(content)], [4, content.length],
      [4, content.length], [2, path.length], [2, 0])
    const entry = [numbers([4, 0x04034b50]), common, path, content]
    parts.push(...entry)
    // Made by Unix; a plain file that all can read.
    const place = numbers([2, 0], [2, 0], [2, 0], [4, 0o100644 * 2 ** 16], [4, offset])
    directory.push(numbers([4, 0x02014b50], [2, 0x0314]), common, place, path)
    offset += entry.reduce((sum, { length }) => sum + length, 0)
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0)
  const count = files.length
  const end = numbers([4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, size], [4, offset], [2, 0])
  return Buffer.concat([...parts, ...directory, end])
}

/** Little-endian, each of so many bytes. */
function numbers (...all) {
  return Buffer.concat(all.map(([bytes, value]) => {
    const buffer = Buffer.alloc(bytes)
    buffer.writeUIntLE(value, 0, bytes)
    return buffer
  }))
}
