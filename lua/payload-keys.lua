#!lua flags=no-writes
-- Reads which payload keys the replicas noted (payload-note.lua).
-- KEYS: 1 prefix:{tag}:payload-keys   by replica: when it noted that (ms), a space, and its note
-- ARGV: 1 for how long a note counts (ms)
-- Replies: {'noted', note, …}
local now, notes = clock(), {}
local all = redis.call('HGETALL', KEYS[1])
for i = 2, #all, 2 do
  local noted, note = string.match(all[i], '^(%d+) (.*)$')
  if now - noted <= tonumber(ARGV[1]) then notes[#notes + 1] = note end
end
return { 'noted', unpack(notes) }
