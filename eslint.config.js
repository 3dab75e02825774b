// Not by its name: it isn't among the packages of tests and builds.
import neostandard from './.ci/lint/node_modules/neostandard/index.js'

export default [
  ...neostandard({ ts: true, ignores: ['**/dist/**', 'src/clients/typescript/api.ts', '.tap/**', '.cache/**'] }),
  {
    files: ['src/**'],
    // Templates are text for people, whose lines are theirs. A pattern can't be broken.
    rules: { '@stylistic/max-len': ['error', { code: 120, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true }] },
  },
  {
    files: ['test/**'],
    rules: {
      // A pattern that is a name, or a list of names, matches no object: such a test can't fail.
      'no-restricted-syntax': ['error', {
        selector: 'CallExpression[callee.property.name="notHas"][arguments.1.type!="ObjectExpression"]',
        message: "Write t.notOk('name' in object).",
      }],
    },
  },
]
