/**
 * The suite through a balancer: each test's service is three replicas behind HAProxy, configured as operators are told to, and
 * what it asks goes there over HTTP. Then a few of the files through nginx.
 *
 * Left out is what looks at one replica or at its Redis's every command (draining, outage, waiting-redis), at its log (logs), or
 * speaks to its socket what a balancer would refuse or mend itself (bad-requests, problems, timeouts, waiting-ends); and files,
 * test/web and test/handoff, which are the same behind anything.
 */
import t from 'tap'
import { hasHaproxy } from '../faults/fleet/haproxy.ts'
import { hasNginx } from '../faults/fleet/nginx.ts'
import { isWhole, skipUnlessWhole } from '../helpers/extent.ts'
import { passes } from '../helpers/suite.ts'

t.setTimeout(900_000)

const files = ['http/approvals-decide', 'http/approvals', 'http/around', 'http/as-passed', 'http/auth', 'http/bad-bodies',
  'http/idempotency', 'http/openapi', 'http/pass', 'http/status', 'http/waiting', 'web/forms', 'web/session', 'races']
const few = ['http/around', 'http/bad-bodies', 'http/status']

t.test('through HAProxy', { skip: hasHaproxy() ? false : 'haproxy is not installed' }, t => passes(t, { TEST_THROUGH: 'haproxy' }, isWhole ? files : few))
t.test('through nginx', { skip: hasNginx() ? false : 'nginx is not installed', ...skipUnlessWhole }, t => passes(t, { TEST_THROUGH: 'nginx' }, few))
