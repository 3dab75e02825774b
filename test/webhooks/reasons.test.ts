import t from 'tap'
import { whyCallbackFailed, whyFailed } from '../../src/webhooks/reasons.ts'

t.equal(whyFailed(null, null, false), null, 'not tried yet')
t.equal(whyFailed(204, null, false), null)
t.equal(whyFailed(250, null, true), null)
t.match(whyFailed(null, 'target_refused', false), /WEBHOOK_ALLOW/)
t.match(whyFailed(null, 'target_refused', true), /MAIL_ALLOW/)
t.match(whyFailed(null, 'timeout', false), /15 seconds/)
t.match(whyFailed(null, 'ESOMETHING', false), /ESOMETHING/)
t.match(whyFailed(302, null, false), /302.*redirect/)
t.match(whyFailed(410, null, false), /410.*disabled/)
t.match(whyCallbackFailed(410, null), /410.*isn’t sent again/)
t.match(whyCallbackFailed(null, 'ECONNREFUSED'), /Nothing listens/)
t.match(whyFailed(503, null, false), /503/)
t.match(whyFailed(550, null, true), /mail server.*550/)
