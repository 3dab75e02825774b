#!lua
-- Creates an API key under its id. Only a digest of its secret is kept.
-- KEYS: 1 prefix:{tag}:k:id  the key  2 prefix:{tag}:keys  all keys by when they were created
--       3 prefix:{tag}:keys:over  keys that end or have ended, by when they are forgotten
--       4 prefix:{tag}:keys:log   the log of keys' changes; each is published on the channel of the same name
-- ARGV: 1 the call's deadline (ms)  2 id  3 its secret's digest  4 tenant  5 agent  6 scopes, separated by commas
--       7 how long it lasts (ms); empty for no end  8 its rate limit, requests per minute; empty for the service's
--       9 the inboxes that it may catch from, separated by commas; empty for any  10 how long an ended key is kept (ms)
--       11 the author
-- Replies: {'created', fields}  it exists now, or the same operation created it before: no two secrets have the same
--                               digest
--          {'taken'}            another key has this id; nothing changed
-- The fields of a key, as HGETALL gives them: tenant agent scopes created digest [ends] [rate] [inboxes]
-- [update_token] [rotated previous previous_ends] [revoked revoke_token]. Times in milliseconds since the epoch. A key
-- that ends is removed by its TTL some time later.
--@include late
local key, keys, over, log = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, digest, tenant, agent, scopes = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local lasts, rate, inboxes, retention, by = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local made = redis.call('HGET', key, 'digest')
local forgotten = redis.call('ZRANGE', over, '-inf', now, 'BYSCORE', 'LIMIT', 0, 100)

if made == digest then return { 'created', redis.call('HGETALL', key) } end
if made then return { 'taken' } end

redis.call('HSET', key, 'tenant', tenant, 'agent', agent, 'scopes', scopes, 'created', ms(now), 'digest', digest)
if rate ~= '' then redis.call('HSET', key, 'rate', rate) end
if inboxes ~= '' then redis.call('HSET', key, 'inboxes', inboxes) end
redis.call('ZADD', keys, ms(now), id)
if lasts ~= '' then
  local ends = now + lasts
  redis.call('HSET', key, 'ends', ms(ends))
  redis.call('PEXPIREAT', key, ms(ends + retention))
  redis.call('ZADD', over, ms(ends + retention), id)
end
-- The indexes are cleaned here, since only making keys needs them small.
if #forgotten > 0 then
  redis.call('ZREM', keys, unpack(forgotten))
  redis.call('ZREM', over, unpack(forgotten))
end
redis.call('XADD', log, 'MAXLEN', '~', 1000, '*',
  'action', 'created', 'id', id, 'tenant', tenant, 'agent', agent, 'by', by)
redis.pcall('SPUBLISH', log, 'created')
return { 'created', redis.call('HGETALL', key) }
