#!lua flags=no-writes
-- Names the dependents that still wait for a handoff.
-- KEYS: 1 prefix:{tag}:d:tenant:id   its dependents (lib/after.lua)
-- ARGV: 1 how many at most
-- Replies: {'around', dependent, …}   as the set has them
return { 'around', unpack(redis.call('SRANDMEMBER', KEYS[1], ARGV[1])) }
