#!lua flags=allow-oom
-- Removes the notes of a dependent at these handoffs: it has ended without waiting for their end.
-- KEYS: 1… prefix:{tag}:h:tenant:id   the handoffs; in a Cluster of one partition
-- ARGV: 1 the call's deadline (ms)  2 the dependent's id  3 their tenant:id, separated by spaces
-- Replies: {'forgotten'} {'newer'}
--@include late inbox after
local dependent = ARGV[2]
local stands = readStands(ARGV[3], dependent)

if not stands then return { 'newer' } end
forgetDependent(stands, dependent)
return { 'forgotten' }
