#!lua flags=no-writes
-- Reads attempts of one work, from one of them on: those after it, or those before it.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the first to read
-- ARGV: 1 i for those after it, o for those before it: the letter of the word that names the next to read
--       2 how many at most  3 prefix:{tag}:h:tenant:, which the keys of all begin with
-- Replies: {'found', now, next, id, record, extra, decision, …}  an attempt's four parts, in the order read; next:
--                        the id to go on from, nil at the end; the extra is nil if there is none, the decision is there
--                        for what was rejected alone
--          {'not_found'}
local prefix, letter, found, key = ARGV[3], ' ' .. ARGV[1] .. '(%S+)', {}, KEYS[1]
local id = string.sub(key, #prefix + 1)
for _ = 1, ARGV[2] do
  local record, extra = unpack(redis.call('HMGET', key, 's', 'x'))
  -- The first attempts may be gone.
  if not record then id = nil break end
  local decision = string.find(record, 'rejected', 1, true) and redis.call('HGET', key, 'd')
  for _, part in ipairs({ id, record, extra, decision or false }) do found[#found + 1] = part end
  id = extra and string.match(extra, letter)
  if not id then break end
  key = prefix .. id
end

if #found == 0 then return { 'not_found' } end
return { 'found', clock(), id or false, unpack(found) }
