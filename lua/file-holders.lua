#!lua flags=allow-oom
-- Says which handoffs of a partition have a file, and forgets those that are gone.
-- KEYS: 1 prefix:{tag}:having:tenant:file   which have it (lib/files.lua)
-- ARGV: 1 the call's deadline (ms)  2 what the keys of the tenant's handoffs here begin with  3 how many come before
--       the page  4 how many it has at most
-- Replies: {'holders', now, next, waited, …}  each: i or r, a colon and the id, the record, and field x; next: how many
--                  come before the next page, -1 if there is none; waited: of how many here no handoff is there yet
--@include late files
local having, beginning, from, count = KEYS[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local members = redis.call('ZRANGE', having, from, from + count - 1, 'WITHSCORES')
local gone, waited = {}, 0
local reply = { 'holders', now, -1, 0 }
for at = 1, #members, 2 do
  local member, grace = members[at], tonumber(members[at + 1])
  local handoff = beginning .. string.sub(member, 3)
  local record, extra = unpack(redis.call('HMGET', handoff, 's', 'x'))
  -- Alone it would look gone where its slot moves to, while it is still on the other node.
  if not record then redis.call('EXISTS', having, handoff) end
  if record then
    reply[#reply + 1] = { member, record, extra }
  elseif grace < now then
    gone[#gone + 1] = member
  else
    waited = waited + 1
  end
end
if #members == 2 * count then reply[3] = from + count - #gone end
reply[4] = waited

if #gone > 0 then redis.call('ZREM', having, unpack(gone)) end
if #members > 2 * #gone then redis.call('PEXPIREAT', having, ms(now + KEPT)) end
return reply
