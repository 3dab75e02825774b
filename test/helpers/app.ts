import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import type { Logger } from 'pino'
import type { Test } from 'tap'
import { buildApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import type { ApiKey } from '../../src/core/model.ts'
import { PayloadKeys } from '../../src/core/payload-keys.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import { keepSecret } from './log-sink.ts'
import { testStore } from './redis.ts'
import type { TestStore, TestStoreOptions } from './redis.ts'
import { behindBalancer, through } from './through.ts'

/** Each agent's secret. */
export const secrets = {
  alice: 'alice-secret-0123456789',
  alice2: 'alice-second-key-0123456789',
  bob: 'bob-secret-0123456789',
  /** An agent of another tenant, with the same name as ours. */
  foreignAlice: 'foreign-alice-secret-0123456789',
  approver: 'approver-secret-0123456789',
  approver2: 'second-approver-secret-0123456789',
  /** An approver key of the agent that also passes. */
  approverAlice: 'alice-approves-secret-0123456789',
  /** An approver of another tenant, with the same name as ours. */
  foreignApprover: 'foreign-approver-secret-0123456789',
  operator: 'operator-secret-0123456789',
  /** An operator of another tenant, with the same name as ours. */
  foreignOperator: 'foreign-operator-secret-0123456789',
} as const
keepSecret(...Object.values(secrets))
export type Who = keyof typeof secrets

export const testKeys = {
  API_KEYS: `alice:${secrets.alice},alice:${secrets.alice2},bob:${secrets.bob},other/alice:${secrets.foreignAlice}`,
  APPROVER_KEYS: `carol:${secrets.approver},dave:${secrets.approver2},alice:${secrets.approverAlice},other/carol:${secrets.foreignApprover}`,
  OPERATOR_KEYS: `olga:${secrets.operator},other/olga:${secrets.foreignOperator}`,
}

export interface TestApp extends TestStore {
  app: FastifyInstance
  keys: KeyRing
  /** Sends a request with someone's key. A body that is neither string nor Buffer is sent as JSON. */
  call (who: Who | null, method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown, headers?: Record<string, string>): Promise<LightMyRequestResponse>
  /** Passes a handoff, by default alice's. @returns its id */
  pass (more?: object, who?: Who): Promise<string>
  /** The same, and bob has caught it. */
  caught (more?: object): Promise<string>
}

/**
 * The whole service on the Redis of this run, under a prefix of its own, with its log recorded. With TEST_THROUGH, requests go through a
 * balancer to one of three replicas (fleet/suite.smoke.test.ts).
 * @param more keys besides those of every test @param log another log
 */
export async function testApp (
  t: Test, env: Record<string, string> = {}, storeOptions: TestStoreOptions = {}, more: readonly ApiKey[] = [], log?: Logger
): Promise<TestApp> {
  // BASE_URL names the balancer, as in production.
  const settings = { ...testKeys, ...through !== undefined && { BASE_URL: 'http://127.0.0.1:8080', TRUSTED_PROXIES: '127.0.0.1' }, ...env }
  const first = await replica(t, settings, storeOptions, more, log)
  const { app } = first
  if (through !== undefined) {
    const others = await Promise.all([1, 2].map(() => replica(t, settings, { ...storeOptions, prefix: first.prefix }, more, log)))
    app.inject = await behindBalancer(t, [app, ...others.map(other => other.app)]) as typeof app.inject
  }
  const call: TestApp['call'] = (who, method, path, body, headers) => app.inject(requestOf(who, method, path, body, headers))
  const pass: TestApp['pass'] = async (more = {}, who = 'alice') => handoffId(await call(who, 'POST', '/api/pass', { task: 't', ...more }), 201)
  return {
    ...first,
    call,
    pass,
    caught: async more => handoffId(await call('bob', 'GET', `/api/catch/${await pass(more)}`), 200),
  }
}

function handoffId ({ statusCode, body, json }: LightMyRequestResponse, expected: number): string {
  if (statusCode !== expected) throw new Error(body)
  return json().handoff_id
}

async function replica (
  t: Test, env: Record<string, string>, storeOptions: TestStoreOptions, more: readonly ApiKey[], log: Logger | undefined
): Promise<Omit<TestApp, 'call' | 'pass' | 'caught'>> {
  const config = loadConfig(env)
  const store = await testStore(t, { workTtl: config.workTtl, retention: config.retention, eventsRetention: config.eventsRetention, listsEnded: config.listsEnded, decisionsRetention: config.decisionsRetention, runLabels: config.runLabels, payloadKeys: config.payloadKeys.length === 0 ? undefined : new PayloadKeys(config.payloadKeys), ...storeOptions })
  const keys = new KeyRing([...config.apiKeys, ...more], store.store, store.log)
  const app = await buildApp(config, { store: store.store, keys, log: log ?? store.log, webhookSecret: config.webhookSecret, ...storeOptions.webhooks && { webhooks: storeOptions.webhooks }, files: storeOptions.files })
  t.teardown(() => app.close())
  return { ...store, app, keys }
}

function requestOf (who: Who | null, method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, body: unknown, headers: Record<string, string> = {}): InjectOptions {
  const authorization = who === null ? {} : { authorization: `Bearer ${secrets[who]}` }
  if (body === undefined) return { method, url, headers: { ...authorization, ...headers } }
  const payload = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return { method, url, payload, headers: { ...authorization, 'content-type': 'application/json', ...headers } }
}
