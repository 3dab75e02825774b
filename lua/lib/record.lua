-- A handoff is a hash of few fields, since each costs memory (bench/README.md, "Settled once"):
--   s  the record, words separated by one space; each transition appends its own:
--        status approval created expires passed_by pass_token [caught deadline caught_by catch_token [completed done_token]]
--      times in milliseconds since the epoch; approval is none, waiting, approved or rejected; a missing token is -; a
--      traceparent that was passed along follows pass_token and a slash, in the same word
--   p  the payload, JSON members as catch returns them; empty once it was freed. When the handoff is done, the result takes its
--      place, JSON text, empty for none: that writes one field instead of deleting one and making another. Scripts don't parse it
--   t  the beginning of the task, a JSON string, for the list of what waits for a person; only while it waits
--   d  a person's decision: decided decided_by decision_token[/digest] note (JSON text, null for none)
--   h  the payload's digest (SHA-256, base64), if a person decides on it
--   x  what a plain handoff doesn't have, each a space, a letter and its value, in any order:
--        passed: t the inbox that it is for  u its priority, if one was passed  w work_within  b heartbeat_within  a available_at  m max_attempts  d retry_delay  s digest of the result schema
--        lineage: p parent  r root  g hops  c the marks of the payloads from the root to this one, 12 hex digits each
--        attempts: n its number, from the second on  o the id of the one before  i the id of the next one
--        since its catch: h the heartbeat's deadline  f1 a heartbeat moved the work's deadline  q when a cancel was first requested
--        its end, if s has no words for it: e when  y by whom  k token
--      times in milliseconds since the epoch, durations in milliseconds
--   r  the result schema, JSON text as passed
--   e  the error given to fail, or the reason given to decline, JSON text
--   c  the reason given to cancel, JSON text
--   g  a heartbeat's progress: when it was reported, and its object's JSON text
-- A request that waits for a change listens to the sharded channel with the name of the handoff's key. Each transition that an agent or
-- a person makes publishes there, and each that makes a successor.
-- Names, tokens and numbers contain no space, so words are separate.
-- A record with field x, or with a status that version 1 of these scripts didn't know, says so in front of its status: `2:pending …`. A
-- record that needs a newer version has another number there. RECORD and DEADLINES don't match it. So a replica of an older version doesn't
-- touch a record that it can't read ({'newer'}), while newer replicas can.
-- RECORD captures, from each record: status approval created expires passed_by pass_token deadline caught_by catch_token, and the
-- words of done as one. What hasn't happened yet is empty.
local RECORD = '^2?:?(%l+) (%S+) (%d+) (%d+) (%S+) (%S+) ?%d* ?(%d*) ?(%S*) ?(%S*) ?(.*)$'
-- Fewer captures, for the sweep, which may have a million records to read: status approval expires deadline.
local DEADLINES = '^2?:?(%l+) (%S+) %d+ (%d+) %S+ %S+ ?%d* ?(%d*)'
-- The two parts of the word with pass_token.
local OPERATION = '^[^/]+'
local TRACE = '/(.+)$'
local DONE = '^(%d+) (%S+)$'
-- Captures when, by whom, and by which operation.
local DECIDED = '^(%d+) (%S+) ([^%s/]+)'
-- How much longer than the retention a key is kept if the sweep may still have to make a successor of it, in milliseconds. So its payload isn't
-- lost, even if no sweep comes for that long.
local UNSWEPT = 604800000
-- Formats a time. Lua's own conversion also looks for a fraction and an exponent, and takes three times as long.
local function ms(time)
  return string.format('%d', time)
end
