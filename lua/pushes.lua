#!lua flags=no-writes
-- Reads the push configs of an A2A task (lib/tasks.lua).
-- KEYS: 1 prefix:{tag}:task:tenant:id   the task
-- ARGV: none
-- Replies: {'found', configs}   a line each: its number, which change it was sent last, a digest, and the config, JSON
--          {'not_found'}
local latest, lines = unpack(redis.call('HMGET', KEYS[1], 'latest', 'pushes'))

if not latest then return { 'not_found' } end
return { 'found', lines or '' }
