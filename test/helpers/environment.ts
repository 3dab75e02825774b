/** The environment without what tap tells a test of its own by it: that is not for the tests which a test starts. */
export function withoutTap (): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^_?TAP/.test(name)))
}
