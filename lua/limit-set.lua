#!lua flags=allow-oom
-- Sets or removes limits of an agent, or of all agents of a tenant together. Runs in a full Redis too (allow-oom):
-- agents must be slowed down then.
-- KEYS: 1 prefix:{tag}:limits       the limits in requests a minute: tenant or tenant/agent, by requests
--       2 prefix:{tag}:limits:live  the limits of live handoffs: likewise, by handoffs. Version 0.2.0 doesn't know them
--       3 prefix:{tag}:keys:log     the log of changes of keys and limits
-- ARGV: 1 the call's deadline (ms)  2 tenant  3 agent; empty for all of the tenant together
--       4 requests a minute; empty for no limit; - for the one that there is  5 live handoffs: likewise
--       6 how many limits of each kind there may be  7 the author
-- Replies: {'set', rate, live, rate_before, live_before}  from now on, and before; nil for no limit
--          {'too_many'}  there are ARGV 6 limits; nothing changed
--@include late
local rates, lives, log = KEYS[1], KEYS[2], KEYS[3]
local tenant, agent, rate, live, max, by = ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local name = agent == '' and tenant or tenant .. '/' .. agent
local rate_before, live_before = redis.call('ZSCORE', rates, name), redis.call('ZSCORE', lives, name)
if rate == '-' then rate = rate_before or '' end
if live == '-' then live = live_before or '' end

if rate ~= '' and not rate_before and redis.call('ZCARD', rates) >= max or
  live ~= '' and not live_before and redis.call('ZCARD', lives) >= max then
  return { 'too_many' }
end

if rate ~= (rate_before or '') then
  if rate == '' then redis.call('ZREM', rates, name) else redis.call('ZADD', rates, rate, name) end
  redis.call('XADD', log, 'MAXLEN', '~', 1000, '*', 'action', rate == '' and 'limit removed' or 'limit set',
    'tenant', tenant, 'agent', agent, 'limit', rate, 'by', by)
end
-- Version 0.2.0 takes each entry for one of requests a minute: this one's tenant and agent concern no agent there.
if live ~= (live_before or '') then
  if live == '' then redis.call('ZREM', lives, name) else redis.call('ZADD', lives, live, name) end
  redis.call('XADD', log, 'MAXLEN', '~', 1000, '*', 'action', live == '' and 'max_live removed' or 'max_live set',
    'tenant', '', 'agent', '', 'of', name, 'max_live', live, 'by', by)
end
if rate ~= (rate_before or '') or live ~= (live_before or '') then redis.pcall('SPUBLISH', log, 'limit') end
return { 'set', rate ~= '' and rate, live ~= '' and live, rate_before, live_before }
