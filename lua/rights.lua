#!lua flags=no-writes
-- Says which commands the user of this connection may not run, on a key or channel of ours. Runs none of them.
-- KEYS: none, so that it can be asked by who may not use ours
-- ARGV: 1 commands parted by spaces, those with a subcommand as CLIENT|KILL; each takes a key or a channel first, or none at all
--       2 any key of ours: what is granted is a prefix
-- Replies: {'may', lacking, untold}  lacking: those that it may not run, in the same form; empty where it may run all
--                                    untold: a line for each that couldn't be asked about, with Redis's own words behind it
-- Redis 8 answers for a number of arguments that the command takes and refuses any other; those before it take any number, and
-- 7.0 looks for keys without asking whether they are there, and ends. So the most are tried first: each command has its keys then.
local commands, key = ARGV[1], ARGV[2]
local lacking, untold = '', ''
for name in string.gmatch(commands, '%S+') do
  local command, subcommand = string.match(name, '^([^|]+)|?(.*)$')
  local words = { command, subcommand == '' and key or subcommand, key, key, key, key }
  -- The number of their keys, which stand behind it.
  if command == 'EVAL' or command == 'EVALSHA' then words[3] = '0' end
  local told, may
  for count = #words, 1, -1 do
    told, may = pcall(redis.acl_check_cmd, unpack(words, 1, count))
    if told then break end
  end
  if not told then
    untold = untold .. name .. ' ' .. (type(may) == 'table' and may.err or tostring(may)) .. '\n'
  elseif not may then
    lacking = lacking .. ' ' .. name
  end
end
return { 'may', string.sub(lacking, 2), untold }
