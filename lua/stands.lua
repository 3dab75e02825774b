#!lua flags=no-writes
-- Says how handoffs stand that others come after. Changes nothing.
-- KEYS: 1… prefix:{tag}:h:tenant:id   the handoffs; in a Cluster of one partition
-- ARGV: 1 their tenant:id, separated by spaces
-- Replies: {'stands', standing, last, …}  for each: open, noted (open, and others come after it), gone, or how its last
--                  attempt ended; and the id of that attempt
--          {'newer'}
--@include inbox after
local stands = readStands(ARGV[1])
if not stands then return { 'newer' } end
return { 'stands', unpack(shownStands(stands)) }
