/** Runs the service in this process, as `node dist/main.js` does. The import starts it. This never returns: the service ends the process itself. */
export async function serve (): Promise<never> {
  await import('../main.ts')
  return new Promise(() => {})
}
