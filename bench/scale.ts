/** An estimate: from the figures of growth, masters, memory and due it computes what the internet's scale would take, and which limit is reached at which size. */
import { readFigures } from './figures.ts'
import { markdownTable } from './report.ts'

/** What was measured on one machine. */
export interface Measured {
  /** CPU in microseconds per request with the most live handoffs that were measured; Redis's with the most masters. */
  service: number
  redis: number
  /** Bytes of Redis's memory: a pending handoff with its 1 KB payload, and what a finished one leaves. */
  pending: number
  finished: number
  /** Handoffs per second that one replica's sweep expires on one master. */
  swept: number
}

export interface Wanted {
  handoffsPerSecond: number
  live: number
  /** How long a finished handoff stays readable, in seconds. */
  retention: number
}

/** Numbers that aren't measured here: chosen ones, and those of others. */
const chosen = {
  /** Each handoff is passed, caught and reported done once. */
  requestsPerHandoff: 3,
  /** How busy a core may be, so that queues stay short. */
  busy: 0.7,
  /** Bytes of data in one master, so that its machine has room to fork and to copy pages that are written meanwhile. */
  perMaster: 32e9,
  /** The number of nodes that Redis's own documentation recommends at most for a Cluster; each master has a replica. */
  nodes: 1000,
  partitions: 1024,
}

export interface Needed { replicas: number, byCpu: number, byMemory: number, masters: number, bytes: number, livePerPartition: number }

/** The replicas, masters and memory that are needed; one core each. */
export function needs (measured: Measured, { handoffsPerSecond, live, retention }: Wanted): Needed {
  const cores = (microseconds: number) => Math.ceil(handoffsPerSecond * chosen.requestsPerHandoff * microseconds / 1e6 / chosen.busy)
  const bytes = live * measured.pending + handoffsPerSecond * retention * measured.finished
  const [byCpu, byMemory] = [cores(measured.redis), Math.ceil(bytes / chosen.perMaster)]
  return { replicas: cores(measured.service), byCpu, byMemory, masters: Math.max(byCpu, byMemory), bytes, livePerPartition: live / chosen.partitions }
}

export interface Limit { what: string, handoffsPerSecond: number, then: string }

/** Which limit is reached at which size, smallest first. @param retention seconds */
export function limits ({ service, redis, finished, swept }: Measured, retention: number): Limit[] {
  const perCore = (microseconds: number) => chosen.busy * 1e6 / microseconds / chosen.requestsPerHandoff
  const remembered = (masters: number) => masters * chosen.perMaster / retention / finished
  const clusterMasters = chosen.nodes / 2
  const found: Limit[] = [
    { what: 'memory of one master, by what is finished and kept', handoffsPerSecond: remembered(1), then: 'a shorter `RETENTION`, or a Cluster' },
    { what: 'one replica’s core', handoffsPerSecond: perCore(service), then: 'more replicas' },
    { what: 'one master’s core', handoffsPerSecond: perCore(redis), then: 'a Cluster' },
    { what: 'the sweep, where nobody catches anything', handoffsPerSecond: swept, then: 'more than one replica that sweeps' },
    { what: `memory of ${clusterMasters} masters, by what is finished and kept`, handoffsPerSecond: remembered(clusterMasters), then: 'a shorter `RETENTION`' },
    { what: `the cores of ${clusterMasters} masters`, handoffsPerSecond: clusterMasters * perCore(redis), then: 'several Clusters, each with its own tenants' },
    { what: `the cores of ${chosen.partitions} masters, one for each partition`, handoffsPerSecond: chosen.partitions * perCore(redis), then: 'more partitions: another form of id' },
  ]
  return found.sort((a, b) => a.handoffsPerSecond - b.handoffsPerSecond)
}

/** @returns both tables, as Markdown; empty while a scenario that they need has no figures in this results folder */
export function scaleOf (results: string): string {
  const measured = readMeasured(results)
  if (measured === undefined) return ''
  const goal = { handoffsPerSecond: 1e6, live: 1e9 }
  const day = 86_400
  const rows = [day, day / 24, day / 144].map(retention => {
    const { replicas, byCpu, byMemory, masters, bytes, livePerPartition } = needs(measured, { ...goal, retention })
    return [`${retention / 60} min`, count(replicas), count(byCpu), count(byMemory), count(masters), `${(bytes / 1e12).toFixed(1)} TB`, count(livePerPartition)]
  })
  return markdownTable(['`RETENTION`', 'replicas', 'masters by CPU', 'masters by memory', 'masters', 'memory', 'live a partition'], rows) +
    '\n' + markdownTable(['what is used up', 'handoffs a second', 'what then helps'],
    limits(measured, day).map(({ what, handoffsPerSecond, then }) => [what, count(handoffsPerSecond), then]))
}

interface Cpu { service: number, redis: number }
interface Bytes { name: string, bytes: number }

/** What this reads of the kept figures. */
interface Kept {
  growth?: { rows: Cpu[] }
  masters?: { rows: Cpu[] }
  memory?: { payload: number, rows: Bytes[], finished: Bytes[] }
  due?: { due: number, goneAfter: number }
}

/** Two significant digits; more would promise what wasn't measured. */
function count (number: number): string {
  return Math.round(Number(number.toPrecision(2))).toLocaleString('en')
}

/** @returns undefined while the figures of one of the scenarios are missing */
function readMeasured (results: string): Measured | undefined {
  const { growth, masters, memory, due } = readFigures(results) as Kept
  if (growth === undefined || masters === undefined || memory === undefined || due === undefined) return undefined
  const last = <T>(list: readonly T[]) => list[list.length - 1] as T
  const ofOne = (part: keyof Cpu) => last(masters.rows)[part] / (masters.rows[0]?.[part] ?? NaN)
  const embedded = ({ name }: { name: string }) => name === 'embedded'
  return {
    service: last(growth.rows).service * ofOne('service'),
    redis: last(growth.rows).redis * ofOne('redis'),
    pending: memory.payload + last(memory.rows.filter(embedded)).bytes,
    finished: last(memory.finished.filter(embedded)).bytes,
    swept: due.due / due.goneAfter,
  }
}
