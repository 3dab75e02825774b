-- Files that agents uploaded. A tenant's records are in its home partition, one hash a file:
--   agent    who made it             bytes, sha256   as declared: the bytes are there whole when a store has just those
--   words    its name and media type, one text: nothing here looks into it
--   token    of the operation that made it           made    when that was (ms)
--   mark     of the partition as it was then; with id and made it names the object
--   whole    since when it is known to be whole (ms); absent before
--   and under the tag of each partition whose handoffs may have it until when the last claim counts though no handoff
--   is noted there yet (ms). A tag has three characters, and no name above has.
-- Beside it is a sorted set (`keeping`) of these partitions' tags, by when each is to be asked next (ms): there may be
-- thousands, so nothing reads all of them that needs one.
-- Why there: a tenant's share is of bytes and of number, so one script must see all its files to refuse one exactly.
-- There are 10,000 of them at most, so the list is bounded; and each upload is a request of its own and bytes besides,
-- so one partition is no bottleneck.
-- Which handoffs have a file is kept beside these, in their own partitions (`having`), since a transition's script
-- touches no other. The order is what keeps a file: first its record notes the partition with a time to ask there,
-- then the handoff's partition notes the handoff, then the handoff is made. A replica that dies in between leaves a
-- partition that is asked in vain, and never a handoff whose file has gone.
-- How long records, and notes of who has a file, stay without a sweep (ms): 40 days.
local KEPT = 3456000000
-- What the service reads of a file's record, in the order of FileFields in src/store/files.ts. The first is nil if the
-- record has gone.
local function fieldsOfFile(file)
  return redis.call('HMGET', file, 'made', 'mark', 'agent', 'bytes', 'sha256', 'words', 'whole')
end
-- When the sweep is to look at a file: at the first partition's time, or else at the given one.
local function lookAt(keeping, otherwise)
  local _, first = unpack(redis.call('ZRANGE', keeping, 0, 0, 'WITHSCORES'))
  return tonumber(first) or otherwise
end
-- Notes when the sweep is to look at a file, and that it comes by here then.
local function lookAgain(files, tenants, tenant, member, time)
  redis.call('ZADD', files, ms(time), member)
  local _, first = unpack(redis.call('ZRANGE', files, 0, 0, 'WITHSCORES'))
  redis.call('ZADD', tenants, first, tenant)
end
-- The sets of noteFiles. Comes before the first write: while the slot moves, they may be on the other node.
local function openFiles(anchor, handoff, files)
  local beginning, tenant = string.match(handoff, '^(.*}:)h:([^:]+):')
  for file in string.gmatch(files, '[^,%s]+') do
    redis.call('EXISTS', anchor, beginning .. 'having:' .. tenant .. ':' .. file)
  end
end
-- Notes that a handoff has files, in its own partition, which has a sorted set of each: a member is i for a file that
-- was passed or r for one of a result, a colon, and the handoff's id; its score is until when it counts though there is
-- no such handoff. A step that makes a successor calls this for it, without a grace: so a file has moved
-- to it before its predecessor can go.
local function noteFiles(handoff, files, role, now, grace)
  local beginning, tenant, id = string.match(handoff, '^(.*}:)h:([^:]+):(.+)$')
  for file in string.gmatch(files, '[^,%s]+') do
    local having = beginning .. 'having:' .. tenant .. ':' .. file
    redis.call('ZADD', having, ms(now + grace), role .. ':' .. id)
    redis.call('PEXPIREAT', having, ms(now + KEPT))
  end
end
