#!lua flags=no-writes
-- Says which commands the user of this connection may not run, on a key or channel of ours. Runs none of them.
-- KEYS: none, so that it can be asked by who may not use ours
-- ARGV: 1 commands parted by spaces, those with a subcommand as CLIENT|KILL; each takes a key or a channel first, or none at all
--       2 any key of ours: what is granted is a prefix
-- Replies: {'may', lacking}  those that it may not run, in the same form; empty where it may run all
-- EVAL and EVALSHA have their number of keys with them: Redis 7.0 looks for that without asking whether it is there, and ends.
local commands, key = ARGV[1], ARGV[2]
local lacking = ''
for name in string.gmatch(commands, '%S+') do
  local command, subcommand = string.match(name, '^([^|]+)|?(.*)$')
  local words = { command, subcommand == '' and key or subcommand }
  if command == 'EVAL' or command == 'EVALSHA' then words[3] = '0' end
  if not redis.acl_check_cmd(unpack(words)) then lacking = lacking .. ' ' .. name end
end
return { 'may', string.sub(lacking, 2) }
