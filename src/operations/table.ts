import { answer, answerAsPasser, ask, asked, listAsks } from './ask.ts'
import { approve, inspectApproval, listApprovals, reject } from './approvals.ts'
import { cancel } from './cancel.ts'
import { catchNext } from './catch-next.ts'
import { catchOne } from './catch.ts'
import { decline } from './decline.ts'
import { done } from './done.ts'
import { events } from './events.ts'
import { fail } from './fail.ts'
import { heartbeat } from './heartbeat.ts'
import { inbox, listInboxes, setInbox } from './inbox.ts'
import { list } from './list.ts'
import type { Operation, Services } from './operation.ts'
import { purge, redrive } from './operate.ts'
import { pass } from './pass.ts'
import { read } from './read.ts'
import { reissue } from './reissue.ts'
import { status } from './status.ts'
import { wait } from './wait.ts'
import {
  createWebhook, deleteWebhook, enableWebhook, getWebhook, listDeliveries, listWebhooks, replayWebhook, rotateWebhook,
  testWebhook
} from './webhooks.ts'

/** All operations, in the order in which documents and lists of tools show them. */
export function operationsOf (services: Services): readonly Operation[] {
  return [
    pass, catchOne, catchNext, read, inbox, listInboxes, done, status, list, wait, heartbeat, fail, decline, cancel,
    reissue, ask, asked, answer, answerAsPasser, listAsks, listApprovals, inspectApproval, approve, reject, setInbox,
    redrive, purge, events, createWebhook, listWebhooks, getWebhook, deleteWebhook, rotateWebhook, enableWebhook,
    testWebhook, listDeliveries, replayWebhook
  ].map(make => make(services))
}
