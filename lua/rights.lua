#!lua flags=no-writes
-- Says which commands this connection's user may not run on the service's keys and channels. Runs none of them.
-- KEYS: none, so that a user without rights to the service's keys can call it
-- ARGV: 1 commands separated by spaces, with a subcommand as in CLIENT|KILL; each takes a key or channel first, or
--         neither
--       2 any key of the service: rights are granted by prefix
-- Replies: {'may', lacking, untold}  lacking: those that it may not run, in the same form; untold: a line for each that
--                                    Redis couldn't be asked about, with Redis's message after it
-- Redis 8 answers only if the number of arguments is one that the command takes. Earlier versions take any number, but
-- 7.0 reads keys without checking that they are there, and crashes. So the largest number is tried first: then each
-- command has its keys.
local commands, key = ARGV[1], ARGV[2]
local lacking, untold = '', ''
for name in string.gmatch(commands, '%S+') do
  local command, subcommand = string.match(name, '^([^|]+)|?(.*)$')
  local words = { command, subcommand == '' and key or subcommand, key, key, key, key }
  -- The number of keys, which follow it.
  if command == 'EVAL' or command == 'EVALSHA' then words[3] = '0' end
  local known, may
  for count = #words, 1, -1 do
    known, may = pcall(redis.acl_check_cmd, unpack(words, 1, count))
    if known then break end
  end
  if not known then
    untold = untold .. name .. ' ' .. (type(may) == 'table' and may.err or tostring(may)) .. '\n'
  elseif not may then
    lacking = lacking .. ' ' .. name
  end
end
return { 'may', string.sub(lacking, 2), untold }
