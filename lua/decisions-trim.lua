#!lua
-- Removes the oldest entries of a tenant's lists of decisions (lib/decisions.lua), and says how many are left.
-- KEYS: 1… each prefix:{tag}:decisions:tenant: of one partition, or of several where one Redis has them all
-- ARGV: 1 the call's deadline (ms)  2… how many to remove of each list
-- Replies: {'counted', count, …}   for each list
--@include late inbox decisions
local counts = trimDecisions(2)
return { 'counted', unpack(counts) }
