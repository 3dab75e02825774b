#!lua
-- A webhook begins: what its tenant's feed gets from now on is for it.
-- KEYS: 1 prefix:{tag}:hook:tenant:id  the webhook  2 prefix:{tag}:hooks:tenant  the tenant's, by when they were made
--       3 prefix:{tag}:hooks  the tenants that have webhooks here  4 prefix:{tag}:e:tenant  the tenant's feed
-- ARGV: 1 the call's deadline (ms)  2 tenant  3 id  4 url  5 types, parted by commas; empty for all
--       6 inbox; empty for any  7 how many a tenant may have  8 labels, parted by commas; empty for any
--       9 what its messages have of the payload; empty for nothing
--       10 1: messages follow decisions and answers too; empty: they don't
--       11 the time zone of its messages; empty for UTC
-- Replies: {'created', fields}  it is there now, or the same operation made it before: no two webhooks have one id
--          {'too_many'}         the tenant has as many as it may have; nothing changed
-- The fields of a webhook, as HGETALL gives them: url types inbox labels include created generation cursor
-- [updates timezone] [rotated old_until] [disabled] [failing] [claim claim_due] [replay replay_to] [sent summary].
-- generation counts its secrets, which are derived. rotated is the operation that made the newest, old_until is how
-- long the one before it signs as well. cursor is the last event of the feed that was looked at, disabled says why it
-- is disabled, failing since when all attempts failed; replay and replay_to after which event and up to which it still
-- has to replay. sent has when messages to people began within the last minute, summary the id of the one that waits.
-- Times in milliseconds. Beside it, with the same beginning: `:due`, its deliveries by when each is tried next;
-- `:pending`, what they are (webhook-plan.lua); `:delivered` and `:failed`, the newest that were delivered, or could
-- not be; `:summarised`, the newest that people got in a summary alone (webhook-claim.lua).
--@include late
local key, webhooks, tenants, feed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tenant, id, max = ARGV[2], ARGV[3], tonumber(ARGV[7])
local made = redis.call('HGETALL', key)
local newest = redis.call('XREVRANGE', feed, '+', '-', 'COUNT', 1)[1]

if made[1] then return { 'created', made } end
if redis.call('ZCARD', webhooks) >= max then return { 'too_many' } end

redis.call('HSET', key, 'url', ARGV[4], 'types', ARGV[5], 'inbox', ARGV[6], 'labels', ARGV[8], 'include', ARGV[9],
  'created', ms(now), 'generation', 1, 'cursor', newest and newest[1] or '0-0')
if ARGV[10] ~= '' or ARGV[11] ~= '' then redis.call('HSET', key, 'updates', ARGV[10], 'timezone', ARGV[11]) end
redis.call('ZADD', webhooks, ms(now), id)
redis.call('ZADD', tenants, ms(now), tenant)
return { 'created', redis.call('HGETALL', key) }
