/** The environment without tap's own variables: they must not reach tests that a test starts. */
export function withoutTap (): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^_?TAP/.test(name)))
}
