#!lua flags=allow-oom
-- Sets or removes the limit of an agent, or of all agents of a tenant together, in requests a minute. Runs in a full
-- Redis too (allow-oom): agents must be slowed down then.
-- KEYS: 1 prefix:{tag}:limits    the limits: tenant or tenant/agent, by requests a minute
--       2 prefix:{tag}:keys:log  the log of changes of keys and limits
-- ARGV: 1 the call's deadline (ms)  2 tenant  3 agent; empty for all of the tenant together
--       4 requests a minute; empty for no limit  5 how many limits there may be  6 the author
-- Replies: {'set', before}  from now on; before: the former limit, or nil
--          {'full'}         there are ARGV 5 limits; nothing changed
--@include late
local limits, log = KEYS[1], KEYS[2]
local tenant, agent, limit, max, by = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local name = agent == '' and tenant or tenant .. '/' .. agent
local before = redis.call('ZSCORE', limits, name)

if limit == (before or '') then return { 'set', before } end
if limit ~= '' and not before and redis.call('ZCARD', limits) >= max then return { 'full' } end

if limit == '' then redis.call('ZREM', limits, name) else redis.call('ZADD', limits, limit, name) end
redis.call('XADD', log, 'MAXLEN', '~', 1000, '*', 'action', limit == '' and 'limit removed' or 'limit set',
  'tenant', tenant, 'agent', agent, 'limit', limit, 'by', by)
redis.pcall('SPUBLISH', log, 'limit')
return { 'set', before }
