#!lua flags=no-writes
-- Lists what waits for a person, oldest first, from a position on. Like list.lua, a call is limited in what it looks at
-- and reads, and says where the list goes on.
-- KEYS: 1 prefix:{tag}:w:tenant   handoffs that wait for a person, by when they were passed
-- ARGV: 1 when the last one seen was passed (ms); 0 for the start  2 its tenant:id; empty for the start
--       3 how many at most  4 prefix:{tag}:
--       5 the words of field x that are wanted, separated by spaces; absent for any
--       6 how many members to look at; absent for 1000
-- Replies: {'listed', now, since, after, count, member, record, task, extra, digest, size, member, …}  the list goes on
--                     after since and after, in the form of ARGV 1 and 2; nil at its end. count: all that wait, wanted
--                     or not, among them for some seconds those that have expired. A task is what the list keeps of
--                     it; extra and digest are nil if there is none; size: the payload's bytes
--@include inbox listing
local waiting = KEYS[1]
local since, after, limit, prefix, words = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5] or ''
local looks, bytes = tonumber(ARGV[6] or 1000), 524288
local now = clock()
local reply = { 'listed', now, false, false, redis.call('ZCARD', waiting) }
-- By position, not by number: earlier handoffs may be gone, and later ones new.
local rank = rankBehind(waiting, since, after)
local last = rank + looks - 1
while rank <= last do
  local upto = math.min(rank + limit, last)
  local members = redis.call('ZRANGE', waiting, rank, upto, 'WITHSCORES')
  for i = 1, #members, 2 do
    local key = prefix .. 'h:' .. members[i]
    local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))
    if not record then isHere(waiting, key) end
    local expires = record and select(4, string.match(record, RECORD))
    -- An expired handoff that isn't swept yet no longer waits.
    local task, digest
    if expires and now < tonumber(expires) and isWanted(extra, words) then
      task, digest = unpack(redis.call('HMGET', key, 't', 'h'))
    end
    if task then
      if #reply >= 5 + 6 * limit or #task > bytes then
        reply[3], reply[4] = since, after
        return reply
      end
      bytes = bytes - #task
      local size = redis.call('HSTRLEN', key, 'p')
      for _, part in ipairs({ members[i], record, task, extra, digest, size }) do reply[#reply + 1] = part end
    end
    since, after = members[i + 1], members[i]
  end
  -- These were the last members.
  if #members < 2 * (upto - rank + 1) then return reply end
  rank = upto + 1
end
reply[3], reply[4] = since, after
return reply
