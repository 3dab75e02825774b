#!lua flags=no-writes
-- Lists what people decided last, the latest first. Once payloads are too many bytes to read, tasks are left out.
-- KEYS: 1 prefix:{tag}:w:tenant:decided   handoffs that people decided on, by when (decide.lua)
-- ARGV: 1 how many at most  2 prefix:{tag}:
-- Replies: {'listed', now, member, record, decision, extra, task, member, …}  extra is nil if there is none; task is
--                     the beginning of a JSON string, nil where the payload is gone or too long
local decided, limit, prefix = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local now = clock()
local bytes = 2097152
local reply = { 'listed', now }
local members = redis.call('ZRANGE', decided, 0, limit - 1, 'REV', 'WITHSCORES')
for i = 1, #members, 2 do
  local key = prefix .. 'h:' .. members[i]
  local record, decision, extra = unpack(redis.call('HMGET', key, 's', 'd', 'x'))
  -- The handoff may be gone, and its id may be another one's by now.
  if record and decision and string.match(decision, '^%d+') == members[i + 1] then
    local size, task = redis.call('HSTRLEN', key, 'p'), false
    if size > 0 and size <= bytes and not string.match(record, '^2?:?done ') then
      bytes = bytes - size
      task = taskOf(redis.call('HGET', key, 'p'))
    end
    for _, part in ipairs({ members[i], record, decision, extra, task }) do reply[#reply + 1] = part end
  end
end
return reply
