#!lua
-- Notes a dependent at the handoffs that it comes after, and says how they stand.
-- KEYS: 1… prefix:{tag}:h:tenant:id   the handoffs; in a Cluster of one partition
-- ARGV: 1 the call's deadline (ms)  2 the dependent's id  3 their tenant:id, separated by spaces
-- Replies: {'stand', standing, last, …}  for each: noted (open, with the note), gone, or how its last attempt ended;
--                  and the id of that attempt
--          {'newer'}
--@include late inbox after
local dependent = ARGV[2]
local stands = readStands(ARGV[3])

if not stands then return { 'newer' } end
noteDependent(stands, dependent)
return { 'stand', unpack(shownStands(stands)) }
