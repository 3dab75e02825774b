/** The floor: the same requests answered from memory. Run as a process. */
import { randomId } from '../src/core/ids.ts'
import { serve } from './peers/app.ts'
import type { Passed } from './peers/app.ts'

interface Kept extends Passed { caughtBy: string | null }

const kept = new Map<string, Kept>()

await serve({
  pass ({ body, createdAt }) {
    const id = randomId()
    kept.set(id, { body, createdAt, caughtBy: null })
    return id
  },
  catch (id, agent) {
    const handoff = kept.get(id)
    if (handoff === undefined || handoff.caughtBy !== null) return null
    handoff.caughtBy = agent
    return handoff
  },
  done (id, agent) {
    if (kept.get(id)?.caughtBy !== agent) return false
    return kept.delete(id)
  },
  status: id => kept.get(id) ?? null,
})
