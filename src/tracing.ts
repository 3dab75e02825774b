/**
 * OpenTelemetry as a preload: `node --import ./dist/tracing.js dist/main.js`. The service doesn't depend on it, and
 * pays nothing without it. The settings are OpenTelemetry's own, OTEL_*, which its SDK reads.
 */
import { stderr } from './core/stdio.ts'

try {
  const { startTracing } = await import('./tracing/start.ts')
  startTracing()
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
  stderr.write('tracing is off: OpenTelemetry is not installed here; npm install --include=optional installs it\n')
}
