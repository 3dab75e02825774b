import type { Scenario } from './scenario.ts'
import { cluster } from './scenarios/cluster.ts'
import { fuzz } from './scenarios/fuzz.ts'
import { groupWait } from './scenarios/group-wait.ts'
import { killedRedis } from './scenarios/killed-redis.ts'
import { partition } from './scenarios/partition.ts'
import { repliesCut } from './scenarios/replies-cut.ts'
import { rollingRestarts } from './scenarios/rolling-restarts.ts'
import { scriptFlush } from './scenarios/script-flush.ts'
import { sentinel } from './scenarios/sentinel.ts'
import { simulation } from './scenarios/simulation.ts'
import { slowClients } from './scenarios/slow-clients.ts'
import { soak } from './scenarios/soak.ts'

/** The rows of the table, in order. */
export const scenarios: readonly Scenario[] = [
  repliesCut, killedRedis, sentinel, cluster, partition, scriptFlush, rollingRestarts, slowClients, fuzz, simulation, soak, groupWait,
]
