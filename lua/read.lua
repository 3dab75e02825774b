#!lua flags=no-writes
-- Reads a handoff's payload again for its catcher, as long as it is caught.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: 1 the calling agent
--       2 the inboxes that the key is limited to, each between spaces; empty or absent for any
--       3 how many bytes the payload may have; absent for any
-- Replies: {'caught', created, payload, decision, traceparent, record, extra, schema, checkpoint}  as in catch.lua
--          {'not_found'} {'replayed'}  the latter never: a read has no token
--          {'not_addressee', now, record, extra, decision}  it is for an inbox that this key may not catch from
--          {'expired', now, record, extra} {'rejected', now, record, extra, decision} {'cancelled', …}
--          {'not_caught', …} {'not_the_catcher', …} {'already_done', …} {'already_failed', …} {'already_declined', …}
--          {'locked', name}          it is this agent's, but this replica doesn't have the key of this name
--          {'larger'}                it is this agent's, but its payload has more bytes than ARGV 3
--          {'newer'}
--@include inbox work
local key = KEYS[1]
local now = clock()
local isLarger = ARGV[3] and redis.call('HSTRLEN', key, 'p') > ARGV[3] + 0
local record, payload, decision, extra, schema =
  unpack(redis.call('HMGET', key, 's', isLarger and 's' or 'p', 'd', 'x', 'r'))

-- In catch's order: this comes before the state.
if record and not isAddressed(extra, ARGV[2] ~= '' and ARGV[2]) then
  return { 'not_addressee', now, record, extra, decision }
end
local refusal = unheld(key, record, extra, ARGV[1], '', now)
if refusal then return refusal end
local checkpoint = checkpointOf(key, extra)
if checkpoint and ARGV[3] and #payload + #checkpoint > ARGV[3] + 0 then isLarger = true end
local lock = lockOn(extra, decision, checkpoint)
if lock then return { 'locked', lock } end
if isLarger then return { 'larger' } end
local _, _, created, _, _, passed = string.match(record, RECORD)
return { 'caught', tonumber(created), payload, decision,
  string.match(passed, TRACE) or false, extra and record, extra, schema, checkpoint or nil }
