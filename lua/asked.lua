#!lua flags=no-writes
-- Reads the latest question of a handoff, with its answer. Changes nothing.
-- KEYS: 1 prefix:{tag}:h:tenant:id   the handoff
-- ARGV: none
-- Replies: {'found', now, record, extra, question, texts, answer}  fields q, u and a (lib/record.lua); parts that don't
--                      exist are nil
--          {'not_found'}
local record, extra, question, texts, answer = unpack(redis.call('HMGET', KEYS[1], 's', 'x', 'q', 'u', 'a'))

if not record then return { 'not_found' } end
return { 'found', clock(), record, extra, question, texts, answer }
