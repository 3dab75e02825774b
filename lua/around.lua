#!lua flags=no-writes
-- Who comes after a handoff, as far as they wait for it still.
-- KEYS: 1 prefix:{tag}:d:tenant:id   its dependents (lib/after.lua)
-- ARGV: 1 how many at most
-- Replies: {'around', dependent, …}   as they stand there
return { 'around', unpack(redis.call('SRANDMEMBER', KEYS[1], ARGV[1])) }
