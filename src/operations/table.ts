import { answer, answerAsPasser, ask, asked, listAsks } from './ask.ts'
import { approve, inspectApproval, listApprovals, listDecisions, reject } from './approvals.ts'
import { callbackSecret, rotateCallbackSecret } from './callbacks.ts'
import { whoami } from './identity.ts'
import { cancel, purge, redrive, redriveChosen, reissue } from './operate.ts'
import { catchNext, inbox, inboxGroups, listInboxes, setInbox, inboxWorkers } from './inboxes.ts'
import { catchOne, decline, done, fail, heartbeat, pass } from './lifecycle.ts'
import { events } from './events.ts'
import { deleteFile, getFile, makeFile } from './files.ts'
import { get, list, listRuns, read, status, wait } from './reads.ts'
import {
  backfillSchedule, deleteSchedule, getSchedule, listScheduleRuns, listSchedules, pauseSchedule, putSchedule,
  resumeSchedule, runSchedule
} from './schedules.ts'
import type { Operation, Services } from './operation.ts'
import {
  createWebhook, deleteWebhook, enableWebhook, getWebhook, listDeliveries, listWebhooks, replayWebhook, rotateWebhook,
  testWebhook
} from './webhooks.ts'

/** All operations, in the order in which documents and lists of tools show them. */
export function operationsOf (services: Services): readonly Operation[] {
  return [
    pass, catchOne, catchNext, read, inbox, listInboxes, inboxWorkers, inboxGroups, done, status, list, listRuns, get,
    wait, heartbeat, fail, decline, cancel, reissue, ask, asked, answer, answerAsPasser, listAsks, listApprovals,
    inspectApproval, approve, reject, listDecisions, setInbox, redrive, redriveChosen, purge, events, createWebhook,
    listWebhooks, getWebhook, deleteWebhook, rotateWebhook, enableWebhook, testWebhook, listDeliveries, replayWebhook,
    callbackSecret, rotateCallbackSecret,
    putSchedule, getSchedule, listSchedules, deleteSchedule, pauseSchedule, resumeSchedule, listScheduleRuns,
    runSchedule, backfillSchedule, makeFile, getFile, deleteFile, whoami
  ].map(make => make(services))
}
