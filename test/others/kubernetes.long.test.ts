import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { BlockList } from 'node:net'
import { join } from 'node:path'
import { Deployment } from 'kubernetes-models/apps/v1'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, Service, ServiceAccount } from 'kubernetes-models/v1'
import t from 'tap'
import ts from 'typescript'
import { parseAllDocuments } from 'yaml'
import { loadConfig } from '../../src/config.ts'
import { Lookups } from '../../src/core/lookups.ts'
import { Targets } from '../../src/webhooks/targets.ts'
import { testApp } from '../helpers/app.ts'
import { commandsUnder } from '../helpers/pages.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

type Manifest = Record<string, any>

/** The allowed documents by version and kind, with their schema and type. */
const models: Record<string, { Model: new (manifest: any) => { validate (): void }, from: string }> = {
  'apps/v1 Deployment': { Model: Deployment, from: 'apps/v1' },
  'networking.k8s.io/v1 NetworkPolicy': { Model: NetworkPolicy, from: 'networking.k8s.io/v1' },
  'policy/v1 PodDisruptionBudget': { Model: PodDisruptionBudget, from: 'policy/v1' },
  'v1 ConfigMap': { Model: ConfigMap, from: 'v1' },
  'v1 Service': { Model: Service, from: 'v1' },
  'v1 ServiceAccount': { Model: ServiceAccount, from: 'v1' },
}

const file = 'deploy/kubernetes/handoff.yaml'
const wayOut = 'deploy/kubernetes/webhooks.yaml'

async function manifestsOf (file: string): Promise<Manifest[]> {
  return parseAllDocuments(await readFile(join(projectRoot, file), 'utf8')).map(document => {
    if (!('errors' in document) || document.errors.length > 0) throw new Error(`${file} is no YAML`)
    return document.toJS() as Manifest
  })
}

const manifests = await manifestsOf(file)
const one = (kind: string): Manifest => manifests.find(manifest => manifest.kind === kind)!
const deployment = one('Deployment')
const pod = deployment.spec.template
const [container] = pod.spec.containers
const [port, operations] = container.ports

/** @throws with the faults by the schema of its version and kind */
function validate (manifest: Manifest): void {
  const known = models[`${manifest.apiVersion} ${manifest.kind}`]
  if (known === undefined) throw new Error(`no schema of ${manifest.apiVersion} ${manifest.kind}`)
  new known.Model(manifest).validate()
}

/** Unknown fields, in a sentence each. The schemas accept them; the types, which are made from the same source, don't. */
function unknownFields (all: readonly Manifest[]): string[] {
  const lines = all.map((manifest, index) => {
    const { from } = models[`${manifest.apiVersion} ${manifest.kind}`]!
    return `export const m${index}: import('kubernetes-models/${from}').I${manifest.kind} = ${JSON.stringify(manifest)}`
  })
  const path = join(projectRoot, 'test/others/manifests.ts') // virtual, never on disk
  const options = { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, strict: true, skipLibCheck: true, noEmit: true, types: [] }
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists } = host
  host.fileExists = name => name === path || fileExists(name)
  host.getSourceFile = (name, ...rest) => name === path ? ts.createSourceFile(path, lines.join('\n'), ts.ScriptTarget.Latest) : getSourceFile(name, ...rest)
  const program = ts.createProgram([path], options, host)
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))
}

t.test('each document satisfies Kubernetes’ schema', async t => {
  t.equal(manifests.length, Object.keys(models).length)
  for (const manifest of manifests) t.doesNotThrow(() => validate(manifest), manifest.kind)
  t.strictSame(unknownFields(manifests), [])
})

t.test('the probes request the service’s own routes, on their port', async t => {
  const { app } = await testApp(t, { METRICS_PORT: String(operations.containerPort) })
  const { startupProbe, livenessProbe, readinessProbe } = container
  for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
    t.equal(httpGet.port, operations.name)
    await until(async () => (await app.operatorsPort!.inject(httpGet.path)).statusCode === 200)
  }
  t.notSame(livenessProbe.httpGet.path, readinessProbe.httpGet.path, 'a Redis that is away restarts nobody')
  t.equal(port.containerPort, loadConfig({}).port)
  t.equal(one('Service').spec.ports[0].targetPort, port.name)
  t.strictSame(one('NetworkPolicy').spec.ingress[0].ports, [{ port: port.name }, { port: operations.name }])
})

t.test('every document selects the Deployment’s pods', async t => {
  const { labels } = pod.metadata
  const selectors = [deployment.spec.selector.matchLabels, pod.spec.topologySpreadConstraints[0].labelSelector.matchLabels, one('Service').spec.selector,
    one('PodDisruptionBudget').spec.selector.matchLabels, one('NetworkPolicy').spec.podSelector.matchLabels]
  for (const selector of selectors) t.strictSame(selector, labels)
  t.ok(one('PodDisruptionBudget').spec.maxUnavailable < deployment.spec.replicas)
})

t.test('webhooks get out to public addresses, and nothing else does', async t => {
  const [policy, ...others] = await manifestsOf(wayOut)
  t.strictSame(others, [])
  t.doesNotThrow(() => validate(policy!))
  t.strictSame(unknownFields([policy!]), [])
  t.strictSame(policy!.spec.podSelector, one('NetworkPolicy').spec.podSelector)
  t.strictSame(policy!.spec.policyTypes, ['Egress'])
  const [{ ports, to }, ...more] = policy!.spec.egress
  t.strictSame([ports, more], [[{ port: 443 }], []])
  const listOf = (networks: string[]) => {
    const list = new BlockList()
    for (const network of networks) {
      const [address, bits] = network.split('/')
      list.addSubnet(address!, Number(bits), address!.includes(':') ? 'ipv6' : 'ipv4')
    }
    return list
  }
  const blocks = to.map(({ ipBlock: { cidr, except } }: Manifest) => ({ all: listOf([cidr]), but: listOf(except) }))
  const getsOut = (address: string) => {
    const family = address.includes(':') ? 'ipv6' : 'ipv4'
    return blocks.some(({ all, but }: { all: BlockList, but: BlockList }) => all.check(address, family) && !but.check(address, family))
  }
  // Each network's first and last address, and the ones beside them.
  const targets = new Targets([], new Lookups({ atOnce: 1 }))
  for (const address of ['8.8.8.8', '1.1.1.1', '11.0.0.0', '172.15.255.255', '172.32.0.0', '192.167.255.255', '223.255.255.255', '2606:4700:4700::1111', '2a00::1']) t.ok(getsOut(address), address)
  for (const address of ['::1', '64:ff9b::7f00:1', 'fe80::1', 'fc00::1', 'fd12::1', 'ff02::1', '2001:db8::1', '2002:7f00:1::', '4000::1']) t.notOk(getsOut(address), address)
  for (let first = 0; first < 256; first++) {
    for (const second of [0, 15, 16, 18, 19, 31, 51, 63, 64, 88, 127, 168, 254, 255]) {
      const address = `${first}.${second}.${second === 51 ? 100 : second === 88 ? 99 : 2}.1`
      const isRefused = await targets.check('a', new URL(`https://${address}/`)).then(() => false, () => true)
      if (isRefused && getsOut(address)) t.fail(`${address}: the service refuses it, and it gets out`)
    }
  }
  t.notOk(getsOut('168.63.129.16'), 'where a cloud answers its machines')
})

t.test('webhooks need only settings that the manifest has a place for', async t => {
  const names = [...Object.keys(one('ConfigMap').data), ...container.env.map(({ name }: Manifest) => name)]
  for (const name of ['EVENTS_RETENTION', 'WEBHOOK_SECRET']) t.ok(names.includes(name), name)
})

t.test('its environment are settings, and it has enough time to drain', async t => {
  const { data } = one('ConfigMap')
  const own = container.env.filter(({ value }: Manifest) => value !== undefined).map(({ name, value }: Manifest) => [name, value])
  const env = { ...data, ...Object.fromEntries(own), REDIS_URL: 'redis://x' }
  const config = loadConfig(env)
  t.equal(config.baseUrl, data.BASE_URL)
  t.equal(config.replicas, 1)
  t.equal(String(config.drainDelay), env.DRAIN_DELAY)
  t.equal(config.metricsPort, operations.containerPort)
  const source = await readFile(join(projectRoot, 'src/config.ts'), 'utf8')
  const names = [...Object.keys(data), ...container.env.map(({ name }: Manifest) => name)]
  for (const name of names) t.match(source, new RegExp(`^  ${name}: `, 'm'), name)
  t.ok(pod.spec.terminationGracePeriodSeconds * 1000 > config.drainTimeout, 'more than DRAIN_TIMEOUT')
  t.ok(config.drainTimeout > config.drainDelay)
  t.equal(container.envFrom[0].configMapRef.name, one('ConfigMap').metadata.name)
})

t.test('it runs without privileges', async t => {
  t.match(pod.spec.securityContext, { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } })
  t.strictSame(container.securityContext, { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } })
  t.equal(pod.spec.automountServiceAccountToken, false)
})

t.test('the commands of docs/deploy.md create what it needs, and apply it', async t => {
  // A fake kubectl, without a cluster: it prints its arguments, a line per command, separated by tabs.
  const shim = 'kubectl () { (IFS=$\'\\t\'; echo "$*"); }'
  const said = execFileSync('bash', ['-euc', `${shim}\n${commandsUnder('docs/deploy.md', 'Kubernetes')}`], { cwd: projectRoot, encoding: 'utf8' })
  const [namespace, secret, apply, out, again, restart, ...others] = said.trim().split('\n').map(line => line.split('\t'))
  t.strictSame(others, [])
  const name = namespace!.at(-1)!
  t.strictSame(namespace, ['create', 'namespace', name])
  t.strictSame(apply, ['-n', name, 'apply', '-f', file])
  t.strictSame(out, ['-n', name, 'apply', '-f', wayOut])
  t.strictSame(again, apply)
  t.strictSame(restart, ['-n', name, 'rollout', 'restart', `deployment/${deployment.metadata.name}`])
  const { secretKeyRef } = container.env.find(({ name }: Manifest) => name === 'REDIS_URL').valueFrom
  const literal = `--from-literal=${secretKeyRef.key}=`
  t.strictSame(secret!.slice(0, -1), ['-n', name, 'create', 'secret', 'generic', secretKeyRef.name])
  t.ok(secret!.at(-1)!.startsWith(literal), secret!.at(-1)!)
  for (const { valueFrom } of container.env) if (valueFrom !== undefined && !valueFrom.secretKeyRef.optional) t.equal(valueFrom.secretKeyRef.key, secretKeyRef.key, 'and nothing else has to be there')
})
