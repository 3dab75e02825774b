/** The service, in this process: what `node dist/main.js` does. Loading it starts it, and it ends the process itself. */
export async function serve (): Promise<void> {
  await import('../main.ts')
}
