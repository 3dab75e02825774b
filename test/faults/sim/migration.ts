import { tagIn } from '../../../src/core/ids.ts'
import { askHolds } from '../../../src/redis/lanes.ts'
import type { Shard } from './shard.ts'
import { slotOfTag } from './slots.ts'
import type { Cluster } from './cluster.ts'

/** From when on no move is slow, in milliseconds: schedules go on making keys, and a slow move would never have moved them all. */
const hurriesAfter = 30_000

/** Moves a slot to another master, as redis-cli does, while it is in use. Resolves when it has moved. */
export async function moveSlot (cluster: Cluster, slot: number, to: Shard): Promise<void> {
  const { world } = cluster
  const { random } = world
  const from = cluster.shardOf(slot)
  if (from === to || !from.isWhole || !to.isWhole) return
  // One that comes back at once could hide what it has (docs/reliability.md).
  if (world.time.now < (cluster.movedAt.get(slot) ?? -Infinity) + askHolds) return
  from.isMoving = to.isMoving = true
  const [source, target] = [from.master, to.master]
  world.tell(`slot ${slot} moves from ${source.name} to ${target.name}`)
  const pace = random.pick(cluster.isCalm ? [2, 20, 900, 4000] : [2, 20, 200])
  const step = () => cluster.sleep((world.time.now > hurriesAfter ? 20 : pace) * random.next())
  cluster.views.get(target)!.importing.set(slot, source)
  await step()
  cluster.views.get(source)!.migrating.set(slot, target)
  const atOnce = random.pick([1, 1, 2, 10])
  for (;;) {
    await step()
    // MIGRATE: neither serves anybody meanwhile. One that pauses answers later.
    if (source.isPaused || target.isPaused) continue
    const keys = [...source.db.values.keys()].filter(key => slotOfTag(tagIn(key)) === slot)
    if (keys.length === 0) break
    const some = Array.from({ length: Math.min(atOnce, keys.length) }, () => keys.splice(random.between(0, keys.length - 1), 1)[0] as string)
    world.tell(`${source.name} gives ${some.join(', ')} to ${target.name}`)
    for (const key of some) {
      target.db.set(key, source.db.values.get(key))
      source.db.set(key, undefined)
    }
    to.moved = target.db.log.length
    from.moved = source.db.log.length
    target.replicate()
    source.replicate()
  }
  const epoch = cluster.newEpoch(slot, target)
  for (const server of [target, source]) {
    const view = cluster.views.get(server)!
    view.learn(slot, target, epoch)
    view.importing.delete(slot)
    view.migrating.delete(slot)
    // The source may get keys again before it hears of it: not from anybody who asks there, since all would be new.
    if (server === target) await step()
  }
  cluster.spread(slot, target, epoch)
  cluster.movedAt.set(slot, world.time.now)
  from.isMoving = to.isMoving = false
}
