/** The service, in this process: what `node dist/main.js` does. Loading it starts it; it ends the process itself, and this never returns. */
export async function serve (): Promise<never> {
  await import('../main.ts')
  return new Promise(() => {})
}
