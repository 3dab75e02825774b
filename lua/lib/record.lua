-- A handoff is a hash of few fields, since each costs memory (bench/README.md, "Settled once"). Fields are letters, and
-- so are the beginnings of words: those of field x; those that pass is given (ARGV 4 of lua/pass.lua), which are field
-- x's where it says "passed" or "lineage", and a few more; and those of an event's text (lib/events.lua). What a letter
-- means depends on where it stands. Times are in milliseconds since the epoch, durations in milliseconds.
--      field of the hash                     word of field x                           word of pass, of an event
--   a  the answer to the question (below)    passed: available_at, a time              pass: delay, a duration
--   b  what it comes after (lib/after.lua)   passed: heartbeat_within, a duration      pass: as in x; event:
--                                                                                      expired_because
--   c  the reason given to cancel, JSON      lineage: marks of the payloads (below)    pass: as in x
--   d  a person's decision (below)           passed: retry_delay, a duration           pass: as in x
--   e  the error given to fail, or the       ended: when, a time                       event: expires_at, of what a
--      reason given to decline, JSON                                                   person is asked
--   f  -                                     caught: f1 if a heartbeat or a question   event: of, whom a question asks
--                                            moved the work's deadline
--   g  a heartbeat's progress: when it was   lineage: hops, a number                   pass: as in x
--      reported, a space, JSON
--   h  the payload's digest (SHA-256,        caught: the heartbeat's deadline, a       pass: as the field
--      base64), if a person decides on it    time
--   i  -                                     attempts: reissued_as, the next one's id  event: as in x
--   j  -                                     passed: a label, name:value; up to 8      pass, event: as in x
--   k  the checkpoint, JSON as given          ended: the operation's token              pass: more marks of its token
--   l  -                                     ended: the code of the error              pass: how many bytes of the task
--                                                                                      field t keeps, from its quote on
--   m  the questions before the latest       passed: max_attempts, a number            pass: as in x
--      (below)
--   n  the title: the task's beginning, a    attempts: its number, from 2 on           pass: how many bytes of the task
--      JSON string without its end quote                                               field n keeps; event: as in x
--   o  where its callback goes: the URL, and  attempts: reissue_of, the id before       event: as in x
--      the token behind a space if there is
--      one
--   p  the payload, then the result (below)  lineage: parent, an id                    pass, event: as in x
--   q  the latest question, JSON             caught: when a cancel was first           event: ask_id
--                                            requested, a time
--   r  the result schema, JSON as passed     lineage: root, an id                      pass: as in x
--   s  the record (below)                    passed: digest of the result schema       pass: as in x; event: a
--                                                                                      question's state
--   t  the beginning of the task, a JSON     passed: to, the inbox that it is for      pass, event: as in x
--      string, while it waits for a person
--   u  what comes with the question (below)  passed: priority, 0 to 9, if given        pass: as in x
--   v  -                                     caught: when the last heartbeat came, a   -
--                                            time
--   w  -                                     passed: work_within, a duration           pass: as in x
--   x  what a plain handoff doesn't have     -                                         -
--   y  -                                     ended: by whom                            event: answered_by
--   z  -                                     caught: the latest question (below)       pass: how many of the payload's
--                                                                                      last bytes are the schema
--   ?  -                                     -                                         pass: only ask if it was made
--   A  -                                     passed: that it comes after others        pass: as in x, and how many of
--                                            (lib/after.lua)                           the payload's last bytes are
--                                                                                      field b, before the schema
--   E  -                                     sealed: the name of the key that sealed   pass: as in x; then fields t
--                                            the payload and what came with it         and n come sealed, and are the
--                                                                                      payload's last bytes
--   F  -                                     attempts: the first one's id              -
--   C  -                                     passed: what its callback tells           pass: as in x, a slash, and how
--                                            (lib/events.lua)                          many of the payload's last
--                                                                                      bytes are field o, at the end
--   G  -                                     passed: its group                         pass, event: as in x
--   H  -                                     approval: the tag of the partition whose   pass: as in x
--                                            list has it (waitingList in
--                                            lib/inbox.lua), if not its own
--   I  -                                     files: the ids of those that it was passed   pass: as in x
--                                            with, with commas between (lib/files.lua)
--   J  -                                     lists: a run, name:value; or *:agent if   pass: as in x
--                                            the agent's are limited (lib/runs.lua)
--   K  -                                     caught: when the checkpoint was given, a   pass: of a schedule, t, b or r,
--                                            time, a slash, and by whom                its making, the tick, its
--                                                                                      round, with slashes between
--                                                                                      (lib/ticks.lua)
--   M  -                                     A2A: the id of the task that it is of       pass: as in x
--                                            (lib/tasks.lua)
--   P  -                                     A2A: what its message had: t text, e      pass: as in x
--                                            empty text; d one part of data, p
--                                            others; f files alone
--   N  -                                     caught: what its worker calls itself,     -
--                                            the latest
--   O  its callbacks: how many are pending,  -                                         -
--      delivered and failed; the last
--      status, error and time, - for none;
--      how many there were
--   S  -                                     schedule: that it is a run of             pass, event: as in x
--   T  -                                     schedule: for which time that ran (ms)    pass, event: as in x
--   U  -                                     approval: whose token it was passed with,   pass: as in x
--                                            a digest of issuer and subject
--   W  -                                     others come after it (lib/after.lua)      -
-- The record is words, separated by one space; each transition appends its own:
--   status approval created expires passed_by pass_token [caught deadline caught_by catch_token [completed done_token]]
-- approval is none, waiting, approved or rejected; a missing token is -; a traceparent follows pass_token and a slash,
-- in the same word. Field x is words of a letter and a value, a space before each, in any order. It has the end if
-- the record has no words for that. A mark is 12 hex digits; they go from the root to this payload.
-- The decision: decided decided_by decision_token[/digest[.person[.signature]]] note; the note is JSON, null for none.
-- It was signed if there is a signature, a compact JWS, which has two dots; person may be empty then.
-- The word of the question is its id, p if it asks people or r if the passer, when it was asked, when it ends, and
-- how it stands, with slashes between: o and how much was left of the work if it is open, a with when and by whom it
-- was answered, e or w with when it expired or was withdrawn. What comes with it: ask_token, the digest of the schema
-- or -, how many bytes the details and the schema have, and both, JSON. The answer: answer_token, how many bytes the
-- note has, the note, JSON, null for none, and the answer, JSON. The questions before it: of each its ask_token, its
-- id, when it was asked and when it ended, with slashes between.
-- The payload is JSON members as catch returns them, its files last; empty once it was freed. When the handoff is done,
-- the result takes its place, JSON, empty for none, and its files behind it (src/core/files.ts): one field is written,
-- none deleted. Scripts don't parse either.
-- A request that waits for a change listens to the sharded channel with the name of the handoff's key. Each transition
-- that an agent or a person makes publishes there, and each that makes a successor.
-- A record with field x, or with a status that version 1 of these scripts didn't know, begins with `2:`; that of a
-- blocked handoff with `3:`, since older versions would let it be caught. A record that needs a newer version has
-- another number there, so RECORD and DEADLINES don't match it, and an older replica doesn't touch it ({'newer'}).
-- Texts may be sealed (core/payload-keys.ts), in the payload's place and in all others that agents and people write. A
-- sealed text begins with ~, byte 1 or byte 2, and the name of its key; scripts only look at that. What is compared
-- is then a mark that a key made, and the digest in field h that mark, a dot, and the sealed digest. The record of a
-- handoff with a sealed payload or result begins with `4:` in place of `2:`, that of a blocked one with `5:`: version
-- 0.2.0 doesn't touch it.
-- A script may build keys from a list's members: they carry the list's tag, so all are in the slot of KEYS[1].
-- Some replies mean the same in each script, and change nothing. {'late'}: the call's deadline, in Redis's time, is
-- over; each script that may write gives it. {'newer'}: a newer version wrote a record. {'full'}: Redis is full, and
-- the change would take more of it (isFull). A refusal has its grounds: now, record, extra, and the decision that ended
-- the handoff.
-- Captures status approval created expires passed_by pass_token deadline caught_by catch_token, and as one the words of
-- done. Words of later transitions are empty.
local RECORD = '^[2-5]?:?(%l+) (%S+) (%d+) (%d+) (%S+) (%S+) ?%d* ?(%d*) ?(%S*) ?(%S*) ?(.*)$'
-- Fewer captures, for the sweep, which may have a million records to read: status approval expires deadline.
local DEADLINES = '^[2-5]?:?(%l+) (%S+) %d+ (%d+) %S+ %S+ ?%d* ?(%d*)'
-- What tenant:id comes after in a handoff's key, and a pattern that captures it. To search for a text takes Redis half
-- as long as for a pattern.
local BEFORE_MEMBER = '}:h:'
local MEMBER = '}:h:(.+)$'
-- Within how many milliseconds the sweep looks at each tenant with live handoffs (lib/due.lua). Each look costs, and so
-- does each pass and catch that is due sooner.
local LOOK = 600000
-- The two parts of the word with pass_token.
local OPERATION = '^[^/]+'
local TRACE = '/(.+)$'
local DONE = '^(%d+) (%S+)$'
-- Values that are only compared come as marks (core/payload-keys.ts): the one under the payload key that seals, and
-- behind commas those under other keys, and the value itself. Without keys the value comes alone. A mark has 31
-- characters, and a value that is written at most as many.
local function isAmong(marks, mark)
  return marks == mark or mark and string.find(',' .. marks .. ',', ',' .. mark .. ',', 1, true)
end
local function firstOf(marks)
  return string.sub(marks, 1, 31)
end
-- Captures when, by whom, and by which operation.
local DECIDED = '^(%d+) (%S+) ([^%s/]+)'
-- Formats a time. Lua's own conversion also looks for a fraction and an exponent, and takes three times as long.
local function ms(time)
  return string.format('%d', time)
end
-- Redis's own clock, the only one that deadlines are compared with: milliseconds; seconds and the six digits of the
-- microseconds after them, as texts, which joined are microseconds; and milliseconds as text. The texts are pieces of
-- Redis's reply: formatting a number takes twice as long. Tests replace this function.
local function clock()
  local time = redis.call('TIME')
  local seconds, micros = time[1], time[2]
  if #micros < 6 then micros = string.rep('0', 6 - #micros) .. micros end
  local formatted = seconds .. string.sub(micros, 1, 3)
  return formatted + 0, seconds, micros, formatted
end
-- The beginning of the task, a JSON string, enough for 200 characters: they take up to 2,400 bytes. The payload begins
-- with "task":. Of a sealed one it is the part that opens by itself (core/payload-keys.ts).
local function taskOf(payload)
  local first = string.byte(payload)
  if first == 1 or first == 2 then return string.sub(payload, 1, 4137) end
  return string.sub(payload, 8, 2447)
end
-- The id of the first attempt, which sealed texts are bound to that go on with the work. Version 0.2.0 doesn't note it.
local function originOf(extra, member)
  return extra and string.match(extra, ' F(%S+)') or string.match(member, ':(.*)$')
end
-- What the record of a handoff begins with that isn't plain, where the record is `record` so far.
local function markOf(record, blocked)
  local isSealed = string.find(record, '^[45]')
  if blocked then return isSealed and '5:' or '3:' end
  return isSealed and '4:' or '2:'
end
-- How many bytes a text has that so many sealed bytes have.
local function openedLength(bytes)
  return bytes - (bytes > 4137 and 69 or 41)
end
-- How many bytes a text has, whether it is sealed or not.
local function lengthOf(text)
  local first = string.byte(text)
  if first == 126 then return math.floor((#text - 9) * 3 / 4) - 32 end
  return (first == 1 or first == 2) and openedLength(#text) or #text
end
-- Would this make a full Redis larger by more than any transition does? `more` is how many bytes it brings beyond what
-- it frees. Only the text of a script asks that runs once Redis has refused the other (redis/scripts.ts).
local function isFull(more)
  return more > 512
end
-- How long an agent has for the work, and how long a handoff is kept after its end (ms).
--@constant WORK_TTL
--@constant RETENTION
-- How long what people decided is kept (ms).
--@constant DECISIONS_RETENTION
-- How many bytes a request alone reads without a slot (store/reads.ts).
--@constant READ_ALONE
