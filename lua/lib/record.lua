-- A handoff is a hash of few fields, since each costs memory (bench/README.md, "Settled once"):
--   s  the record, words parted by one space, each transition appending its own:
--        status approval created expires passed_by pass_token [caught deadline caught_by catch_token [completed done_token]]
--      times in milliseconds since the epoch; approval is none, waiting, approved or rejected; a missing token is -; behind
--      pass_token and a slash the traceparent that was passed along, where there was one: no field of its own, and no word
--   p  the payload, JSON members as catch answers them; empty once it was freed. Once it is done, in its place the result given to
--      done, JSON text, empty for none: one field written, where freeing one and making another is three. Opaque here.
--   t  the beginning of the task, a JSON string, for the list of what waits for a person; there while it waits. An
--      older replica keeps the whole task
--   d  a person's decision: decided decided_by decision_token[/digest] note (JSON text, null for none)
--   h  the payload's digest (SHA-256, base64), of what a person decides on
--   x  what a plain handoff doesn't have, each a space, a letter and its value, in any order:
--        passed: t the inbox that it is for  u its priority, where one was passed  w work_within  b heartbeat_within  a available_at  m max_attempts  d retry_delay  s digest of the result schema
--        lineage: p parent  r root  g hops  c the marks of the payloads from the root to this one, 12 hex digits each
--        attempts: n which one, from the second on  o the one before  i the one behind
--        since its catch: h the heartbeat's deadline  f1 a heartbeat moved the work's deadline  q when a cancel was first requested
--        its end, where s has no words for it: e when  y by whom  k token
--      times in milliseconds since the epoch, durations in milliseconds
--   r  the result schema, JSON text as passed
--   e  the error given to fail, or the reason given to decline, JSON text
--   c  the reason given to cancel, JSON text
--   g  a heartbeat's progress: when it was told, and its object's JSON text
-- Who waits for a change listens to the sharded channel that is named like the handoff's key; each transition that an agent or a
-- person makes publishes there, and each that makes a successor.
-- Names, tokens and numbers hold no space, so a word can't run into the next.
-- A record that has field x, or a status that version 1 of these scripts didn't know, says so in front of its status: `2:pending …`. What
-- needs a newer version than this one has another number there. RECORD and DEADLINES match none of these, so that a replica of an older
-- version leaves alone what it can't read ({'newer'}), beside one that can.
-- RECORD takes out, of each record: status approval created expires passed_by pass_token deadline caught_by catch_token, and the
-- words of done as one; what hasn't come about yet is empty.
local RECORD = '^2?:?(%l+) (%S+) (%d+) (%d+) (%S+) (%S+) ?%d* ?(%d*) ?(%S*) ?(%S*) ?(.*)$'
-- Less of it, for the sweep, which may have a million to look at: status approval expires deadline.
local DEADLINES = '^2?:?(%l+) (%S+) %d+ (%d+) %S+ %S+ ?%d* ?(%d*)'
-- The two parts of pass_token's word.
local OPERATION, TRACE = '^[^/]+', '/(.+)$'
local DONE = '^(%d+) (%S+)$'
-- When, by whom, by which operation.
local DECIDED = '^(%d+) (%S+) ([^%s/]+)'
-- How much longer than the retention a key is kept that the sweep may still have to make a successor of, in milliseconds: however long no
-- sweep comes by, what was passed isn't lost before.
local UNSWEPT = 604800000
-- A time as it is written everywhere: by Lua's own way, which looks for a fraction and an exponent, it takes three times as long.
local function ms(time)
  return string.format('%d', time)
end
