/**
 * The answers by their names in Python, each with the types in TypeScript that it is made of. What these share is what
 * all of them have.
 */
export const pythonAnswers: Readonly<Record<string, readonly string[]>> = {
  Passed: ['Pass', 'Reissue'],
  Handoff: ['Catch'],
  Done: ['Done'],
  Failed: ['Fail'],
  Declined: ['Decline'],
  Heartbeat: ['Heartbeat'],
  Cancelled: ['Cancel'],
  Question: ['Ask', 'Asked'],
  Answered: ['Answer'],
  AskList: ['ListAsks'],
  Status: ['Status'],
  Settled: ['Wait'],
  Everything: ['Get'],
  Inbox: ['Inbox', 'SetInbox'],
  Workers: ['Workers'],
  GroupList: ['Groups'],
  Whoami: ['Whoami'],
  InboxList: ['ListInboxes'],
  HandoffList: ['List'],
  Redriven: ['Redrive'],
  Purged: ['Purge'],
  ApprovalList: ['ListApprovals'],
  ApprovalDetails: ['InspectApproval'],
  Decided: ['Approve', 'Reject'],
  BatchResults: ['Batch'],
  EventsPage: ['Events'],
  Schedule: ['PutSchedule', 'GetSchedule', 'PauseSchedule', 'ResumeSchedule'],
  ScheduleList: ['ListSchedules'],
  ScheduleRuns: ['ListScheduleRuns'],
  Backfilled: ['BackfillSchedule'],
  MadeFile: ['MakeFile'],
  FileInfo: ['GetFile'],
}

/** The names of the items of lists. An item is an answer too: it has its text. */
export const itemsOf: Readonly<Record<string, string>> = {
  AskList: 'OpenQuestion',
  Settled: 'Standing',
  GroupList: 'Group',
  InboxList: 'Inbox',
  HandoffList: 'ListedHandoff',
  ApprovalList: 'WaitingApproval',
  BatchResults: 'BatchResult',
  EventsPage: 'Event',
  ScheduleList: 'ListedSchedule',
  ScheduleRuns: 'ScheduleRun',
}
