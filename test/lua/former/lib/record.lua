-- A handoff is a hash of few fields, since each costs memory (bench/README.md, "Settled once"):
--   s  the record, words parted by one space, each transition appending its own:
--        status approval created expires passed_by pass_token [caught deadline caught_by catch_token [completed done_token]]
--      times in milliseconds since the epoch; approval is none, waiting, approved or rejected; a missing token is -; behind
--      pass_token and a slash the traceparent that was passed along, where there was one: no field of its own, and no word
--   p  the payload, JSON members as catch answers them; empty once it has expired. Once it is done, in its place the result given to
--      done, JSON text, empty for none: one field written, where freeing one and making another is three. Opaque here.
--   t  the beginning of the task, a JSON string, for the list of what waits for a person; there while it waits. An
--      older replica keeps the whole task
--   d  a person's decision: decided decided_by decision_token note (JSON text, null for none)
-- Who waits for a change listens to the sharded channel that is named like the handoff's key; each transition that an agent or a
-- person makes publishes there.
-- Names, tokens and numbers hold no space, so a word can't run into the next.
-- A record that needs a newer version of these scripts than this one, 1, says so in front of its status: `2:pending …`. RECORD and DEADLINES match
-- none of these, so that a replica of an older version leaves alone what it can't read ({'newer'}), beside one that can.
-- RECORD takes out, of each record: status approval created expires passed_by pass_token deadline caught_by catch_token, and the
-- words of done as one; what hasn't come about yet is empty.
local RECORD = '^(%l+) (%S+) (%d+) (%d+) (%S+) (%S+) ?%d* ?(%d*) ?(%S*) ?(%S*) ?(.*)$'
-- Less of it, for the sweep, which may have a million to look at: status approval expires deadline.
local DEADLINES = '^(%l+) (%S+) %d+ (%d+) %S+ %S+ ?%d* ?(%d*)'
-- The two parts of pass_token's word.
local OPERATION, TRACE = '^[^/]+', '/(.+)$'
local DONE = '^(%d+) (%S+)$'
local DECIDED = '^(%d+) (%S+) (%S+) (.*)$'
-- A time as it is written everywhere: by Lua's own way, which looks for a fraction and an exponent, it takes three times as long.
local function ms(time)
  return string.format('%d', time)
end
