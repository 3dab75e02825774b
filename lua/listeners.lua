#!lua flags=no-writes
-- Reads what all replicas noted of who waits for a tenant's inboxes (listen.lua).
-- KEYS: 1 prefix:{tag}:l:tenant   the replicas that noted something, by when (ms)
-- ARGV: 1 for how long a note counts (ms)
-- Replies: {'listened', now, replica, noted, text, …}  three parts for each replica; noted: when (ms), as text
local now = clock()
local noted = redis.call('ZRANGE', KEYS[1], ms(now - ARGV[1]), '+inf', 'BYSCORE', 'WITHSCORES')
local found = {}
for i = 1, #noted, 2 do
  local text = redis.call('GET', KEYS[1] .. ':' .. noted[i])
  if text then found[#found + 1], found[#found + 2], found[#found + 3] = noted[i], noted[i + 1], text end
end
return { 'listened', now, unpack(found) }
