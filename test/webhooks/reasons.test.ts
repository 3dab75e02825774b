import t from 'tap'
import { reasonOf } from '../../src/webhooks/reasons.ts'

t.equal(reasonOf(null, null, false), null, 'not tried yet')
t.equal(reasonOf(204, null, false), null)
t.equal(reasonOf(250, null, true), null)
t.match(reasonOf(null, 'target_refused', false), /WEBHOOK_ALLOW/)
t.match(reasonOf(null, 'target_refused', true), /MAIL_ALLOW/)
t.match(reasonOf(null, 'timeout', false), /15 seconds/)
t.match(reasonOf(null, 'ESOMETHING', false), /ESOMETHING/)
t.match(reasonOf(302, null, false), /302.*redirect/)
t.match(reasonOf(410, null, false), /410.*disabled/)
t.match(reasonOf(503, null, false), /503/)
t.match(reasonOf(550, null, true), /mail server.*550/)
