#!lua flags=no-writes
-- Says how handoffs stand that others come after. Changes nothing.
-- KEYS: 1… prefix:{tag}:h:tenant:id   the handoffs; in a Cluster of one partition
-- ARGV: 1 their tenant:id, separated by spaces  2 the id of a dependent; absent: none
-- Replies: {'stands', standing, last, …}  for each: open, noted (open, with the dependent's note), gone, or how its
--                  last attempt ended; and the id of that attempt
--          {'newer'}
--@include inbox after
local stands = readStands(ARGV[1], ARGV[2])
if not stands then return { 'newer' } end
return { 'stands', unpack(shownStands(stands)) }
