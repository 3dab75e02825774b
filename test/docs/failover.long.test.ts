import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { which } from '../../src/embedded/binary.ts'
import { startSentinelFleet } from '../faults/fleet/sentinel.ts'
import { commandsUnder } from '../helpers/pages.ts'

const client = await which('redis-cli')

t.test('the failover by hand in docs/redis.md works', { skip: client === undefined && 'no redis-cli (Debian: redis-tools)', timeout: 180_000 }, async t => {
  const fleet = await startSentinelFleet(t)
  const [master, [sentinel]] = [await fleet.master(), fleet.sentinels]
  // In the test, master and Sentinels share an address and have other ports, and the master has another name.
  const shim = `redis-cli () {
    case "$*" in
      *'-p 26379'*) set -- "\${@/#26379/${sentinel!.port}}" ;;
      *) set -- -p ${master.port} "$@" ;;
    esac
    '${client}' "\${@/#handoff/${fleet.name}}"
  }`
  const switched = fleet.switched()
  const env = { PATH: process.env.PATH, MASTER: master.host.address, SENTINEL: sentinel!.host.address }
  const { stdout } = await promisify(execFile)('bash', ['-euc', `${shim}\n${commandsUnder('docs/redis.md', 'Failing over by hand')}`], { env })
  t.equal(stdout, 'OK\nOK\n')
  t.not((await switched).at, master.at, 'another is the master')
})
