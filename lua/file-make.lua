#!lua
-- Notes an upload: its tenant's share is taken, and its bytes may come.
-- KEYS: 1 prefix:{tag}:file:tenant:id   the file
--       2 prefix:{tag}:files:tenant   its tenant's, each as id:bytes, by when the sweep looks at it
--       3 prefix:{tag}:files   the tenants with files here, by the same
--       4 prefix:{tag}:shares   by tenant, how many bytes were declared
-- ARGV: 1 the call's deadline (ms)  2 the tenant  3 the file's id  4 how many bytes it has  5 their SHA-256, hex
--       6 the agent  7 its name and media type  8 the operation's token, as marks
--       9 after how long it goes unless whole (ms)
--       10 how many bytes a tenant may have  11 how many files  12 the partition's mark (file-store.lua)
-- Replies: {'made', made}      when it was (ms)
--          {'replayed', made}  the same operation made it before
--          {'reused'}          another one did, with the same Idempotency-Key
--          {'files_full'}      its tenant has as many as it may have; nothing changed
--@include late files
local file, files, tenants, shares = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tenant, bytes, tokens = ARGV[2], tonumber(ARGV[4]), ARGV[8]
local lasts, most_bytes, most_files = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
-- While the slot moves, what isn't found here may be on the other node: Redis refuses to look for several then.
redis.call('EXISTS', file, files, tenants, shares)
local known, made = unpack(redis.call('HMGET', file, 'token', 'made'))

if isAmong(tokens, known) then return { 'replayed', made } end
if known then return { 'reused' } end
local share = (tonumber(redis.call('HGET', shares, tenant) or '0')) + bytes
if share > most_bytes or redis.call('ZCARD', files) >= most_files then return { 'files_full' } end

redis.call('HSET', file, 'agent', ARGV[6], 'bytes', ARGV[4], 'sha256', ARGV[5], 'words', ARGV[7],
  'token', firstOf(tokens), 'made', formatted, 'mark', ARGV[12])
redis.call('PEXPIREAT', file, ms(now + KEPT))
redis.call('HSET', shares, tenant, ms(share))
lookAgain(files, tenants, tenant, ARGV[3] .. ':' .. ARGV[4], now + lasts)
return { 'made', formatted }
