/**
 * Compiles each JSON schema once in a process, whatever app it is for. A service has one app and compiles some forty schemas; a test file builds
 * dozens of apps, and nearly all that an app costs is this. The same schema by the same options comes out as the same function, which keeps
 * nothing but its last `errors`: those are read before anything else is checked. To be imported before fastify, which holds on to what it finds.
 */
import { Ajv } from 'ajv'

/** What was made before of what reads the same, or else by `make`. */
function remembered<Made> (made: Map<string, Made>, of: unknown[], make: () => Made): Made {
  const key = JSON.stringify(of)
  const known = made.get(key) ?? make()
  made.set(key, known)
  return known
}

const { compile } = Ajv.prototype
const validators = new Map<string, ReturnType<typeof compile>>()
Ajv.prototype.compile = function (this: Ajv, schema: object, ...more: []) {
  const anew = () => compile.call(this, schema, ...more)
  // One that was given schemas or keywords of its own compiles by those too: so does what makes the serializers.
  const isPlain = this.opts.validateSchema !== false && Object.keys(this.schemas).every(id => id.startsWith('http://json-schema.org/'))
  const options = Object.entries(this.opts).filter(([, value]) => typeof value !== 'object')
  return isPlain ? remembered(validators, [schema, options], anew) : anew()
} as typeof compile

// What makes the serializers is fastify's own; the bundle of it for tests (compile.ts) asks here first.
const serializers = new Map<string, unknown>()
Object.assign(globalThis, {
  serializerOf: (build: (schema: object, options: object) => unknown) => (schema: object, options: object) =>
    remembered(serializers, [schema, options], () => build(schema, options))
})
