#!lua flags=allow-oom
-- Removes the notes that another one comes after these handoffs: that one has ended without waiting for their end.
-- KEYS: 1… prefix:{tag}:h:tenant:id   the handoffs; in a Cluster of one partition
-- ARGV: 1 the call's deadline (ms)  2 the id of the one that came after them  3 their tenant:id, separated by spaces
-- Replies: {'forgotten'} {'newer'}
--@include inbox after
local dependent = ARGV[2]
local now = clock()
local stands = readStands(ARGV[3])

if now > ARGV[1] + 0 then return { 'late' } end
if not stands then return { 'newer' } end
forgetDependent(stands, dependent)
return { 'forgotten' }
