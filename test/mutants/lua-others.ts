import type { Mutated } from '../mutants.ts'

export const otherScripts: readonly Mutated[] = [
  {
    file: 'lua/schedule-due.lua',
    tests: ['http/locked'],
    changes: [["key ~= '' and isMissing(key)", 'false']],
  },
  {
    file: 'lua/take.lua',
    tests: [
      'http/inboxes', 'http/several-inboxes', 'lua/model', 'state-machine', 'http/inbox-settings', 'http/large-reads',
    ],
    changes: [
      ["if most == 'closed' then return { 'closed' } end", "if most == 'closed' then most = max end"],
      ['if size > 0 and size + one.bytes + 700 > MAX_TAKEN then more = 1 break end', ''],
      ['if size > 0 and size + one.bytes + 700 > MAX_TAKEN', 'if size + one.bytes + 700 > MAX_TAKEN'],
      ['latest = math.max(latest, deadline)', 'latest = deadline'],
      ["redis.call('ZREM', inbox, unpack(gone))", ''],
      ["redis.call('SADD', inbox .. ':caught', unpack(caught))", ''],
      ['remember(remembered, request, names, kept_for, latest - now)', ''],
      ['if most < max and #caught == most then more = 0 end', ''],
      ['from, upto = upto + 1, upto + 32', 'from, upto = upto + 2, upto + 32'],
      ["if max_bytes and bytesOf(wanted) > max_bytes then return { 'larger' } end", ''],
    ],
  },
  {
    file: 'lua/inbox-room.lua',
    tests: ['http/former-homes'],
    changes: [
      ["if most == 'closed' then return { 'closed' } end", ''],
      ["if most == 'limited' then return { 'limited' } end", ''],
      ["if asked ~= request then return { 'reused' } end", ''],
      ["if is_under_way and taker ~= token then return { 'left' } end", ''],
      ['is_under_way and taker ~= token', 'is_under_way'],
      ["if not taker then return { 'known' } end", ''],
      ["redis.call('SET', note, request .. ' ' .. ms(most) .. ' @' .. token .. ' ' .. ms(now), 'PX', NOTE_KEPT)", ''],
      ['NOTE_KEPT = 120000', 'NOTE_KEPT = 10000'],
      ["redis.call('SET', note, request .. ' ' .. taken, 'PX', kept_for)", ''],
      ['elseif note and taker == token then', 'elseif note then'],
      ["redis.call('DEL', note)", ''],
      ["redis.call('HSET', places, token, ms(most) .. ' ' .. ends)", ''],
      ["redis.call('HSET', places, 'settled', '0 ' .. ends .. ' ' .. ms(math.max(taken_at, at_home + 0)))", ''],
      ['math.max(taken_at, at_home + 0)', 'at_home + 0'],
      ["elseif at_home ~= '0' then", 'else'],
      ["if at_home ~= '' then\n  local ends", 'if true then\n  local ends'],
      ["redis.call('PEXPIREAT', places, ends)", ''],
      ["redis.call('HDEL', places, token)", ''],
      ["redis.pcall('SPUBLISH', inbox, 'given')", ''],
    ],
  },
  {
    file: 'lua/lib/ticks.lua',
    tests: ['http/backfills-cut-off', 'http/schedules'],
    changes: [
      ["if kind == 'b' and made == making and tonumber(round) <= settled then return true end", ''],
      ['tonumber(round) <= settled', 'tonumber(round) < settled'],
      ['and tonumber(round) <= settled then', 'and settled > 0 then'],
    ],
  },
  {
    file: 'lua/tick-settle.lua',
    tests: ['http/backfills-cut-off', 'http/schedules'],
    changes: [['moveMark(mark, making, nil, nil, round, now)', ''], ["redis.call('EXISTS', handoff) == 1 or", '']],
  },
  {
    file: 'lua/schedule-run.lua',
    tests: ['http/backfills-cut-off', 'http/schedules'],
    changes: [['or ARGV[5] and version ~= ARGV[5] then', 'then']],
  },
  {
    file: 'lua/claim.lua',
    tests: ['http/several-inboxes', 'http/inboxes', 'http/inboxes-crossings'],
    changes: [
      ["if before and asked ~= request then return { 'reused' } end", ''],
      ['and now < since + 10000 and now > since - 10000', ''],
      ["if isKnown and inbox ~= '' then return { 'left', chosen, gone } end", ''],
      ["if before then redis.call('PEXPIREAT', key, ms(now + ARGV[3]), 'GT') end", ''],
    ],
  },
  {
    file: 'lua/list.lua',
    tests: ['http/lists', 'http/operate', 'cli/list', 'http/approvals', 'lua/waiting'],
    changes: [
      ["string.find('live waiting asked oldest', ARGV[1], 1, true)", "string.find('live asked oldest', ARGV[1], 1, true)"],
      ['texts = 524288, payloads = 2097152', 'texts = 524288000, payloads = 2097152000'],],
  },
  {
    file: 'lua/decision-forget.lua',
    tests: ['http/decisions', 'http/signatures'],
    changes: [
      ["if #fields == 0 then return { 'not_found' } end", ''], ["elseif kind == 's' then\n    redis.call('HDEL', facts, fields[at])", '']
    ],
  },
  {
    file: 'lua/status.lua',
    tests: ['http/status', 'lua/model', 'http/large-reads', 'state-machine'],
    changes: [
      ['if length and length > ARGV[1] + 0 then', 'if false then'],
      ['if longer and longer <= ARGV[2] + 0 then longer = false end', ''],
      ["if result == '' then result = false end", ''],
    ],
  },
  {
    file: 'lua/inspect.lua',
    tests: ['http/approvals', 'web/view', 'lua/model', 'http/large-reads'],
    changes: [
      ["or string.match(record, '^[24]?:?done ') then payload = false end", 'then payload = false end'],
      ["+ redis.call('HSTRLEN', KEYS[1], 'r') > max + 0 then", '> max + 0 then'],
    ],
  },
  {
    file: 'lua/read.lua',
    tests: ['lua/content', 'http/as-passed', 'lua/model', 'state-machine', 'http/large-reads'],
    changes: [
      ["if record and not isAddressed(extra, ARGV[2] ~= '' and ARGV[2]) then", 'if false then'],
      ['if refusal then return refusal end', ''],
      ["if isLarger then return { 'larger' } end", ''],
    ],
  },
  {
    file: 'lua/lineage.lua',
    tests: ['http/lineage', 'lua/successors', 'http/large-reads'],
    changes: [
      ["if isThere and ARGV[1] and redis.call('HSTRLEN', key, 'p') > ARGV[1] + 0 then return { 'larger' } end", ''],
      ["passed_by .. ' ' .. inbox .. ' ' ..", ''],
      ["successor = its and string.match(its, ' i(%S+)')", 'successor = nil'],
    ],
  },
  {
    file: 'lua/key-change.lua',
    tests: ['lua/keys', 'store/key-records', 'http/auth-stored', 'auth/key-ring'],
    changes: [
      [
        "if action == 'revoked' and revoked and revoked_by == token then return { 'revoked', tonumb" +
          'er(revoked) } end',
        '',
      ],
      ["if action == 'updated' and updated_by == token then", 'if false then'],
      ['(digest == token or previous == token) then', '(digest == token) then'],
      ["if revoked then return { 'already_revoked', tonumber(revoked) } end", ''],
      ["if action ~= 'revoked' and ends and now >= tonumber(ends) then return { 'ended' } end", ''],
      ["'previous_ends', ms(now + scopes))", "'previous_ends', ms(now))"],
      ["redis.call('ZADD', over, ms(now + retention), id)", ''],
      ["redis.call('ZREM', over, id)", ''],
      ["if value == '*' then redis.call('HDEL', key, field) end", ''],
      ["redis.pcall('SPUBLISH', log, action)", ''],
    ],
  },
  {
    file: 'lua/key-changes.lua',
    tests: ['lua/keys', 'auth/key-ring', 'store/key-records', 'http/auth-stored'],
    changes: [
      ["'(' .. after, '+', 'COUNT', 100)", "after, '+', 'COUNT', 100)"],
      ["#redis.call('XRANGE', log, after, after) == 0 then", 'false then'],
    ],
  },
  {
    file: 'lua/key-create.lua',
    tests: ['lua/keys', 'store/key-records', 'auth/key-ring'],
    changes: [
      ["if made == digest then return { 'created', redis.call('HGETALL', key) } end", ''],
      ["if made then return { 'taken' } end", ''],
      ["redis.call('PEXPIREAT', key, ms(ends + retention))", "redis.call('PEXPIREAT', key, ms(ends))"],
      ["redis.call('ZREM', keys, unpack(forgotten))", ''],
      ["if inboxes ~= '' then redis.call('HSET', key, 'inboxes', inboxes) end", ''],
    ],
  },
  {
    file: 'lua/key-list.lua',
    tests: ['lua/keys', 'store/key-records', 'cli/keys'],
    changes: [
      ['if #reply >= 2 + 2 * limit then', 'if #reply > 2 + 2 * limit then'],
      ['rank = rank + limit + 1', 'rank = rank + limit + 2'],
    ],
  },
  {
    file: 'lua/lease.lua',
    tests: ['lua/lease', 'store/leases'],
    changes: [
      ['and tonumber(ends) <= now + duration then', 'then'],
      ['holder ~= replica and now < tonumber(ends)', 'holder ~= replica and now < tonumber(ends) - 5000'],
      ["'PX', ms(duration + 5000))", "'PX', ms(duration + 5000000))"],
    ],
  },
  {
    file: 'lua/limit-set.lua',
    tests: ['lua/limits', 'http/agent-limits', 'cli/limits'],
    changes: [
      ["redis.call('ZCARD', rates) >= max", "redis.call('ZCARD', rates) > max"],
      ["redis.call('ZCARD', lives) >= max", "redis.call('ZCARD', lives) > max"],
      ["redis.pcall('SPUBLISH', log, 'limit')", ''],
      ["local name = agent == '' and tenant or tenant .. '/' .. agent", "local name = tenant .. '/' .. agent"],
      ["if live == '-' then live = live_before or '' end", "if live == '-' then live = '' end"],
    ],
  },
  {
    file: 'lua/uncounted.lua',
    tests: ['http/quotas'],
    changes: [
      ['last == from and left_out + same or same', 'left_out + same'],
    ],
  },
  {
    file: 'lua/live-tidy.lua',
    tests: ['http/quotas'],
    changes: [
      ["status ~= 'pending' and status ~= 'caught'", "status ~= 'pending'"],
      ["if #gone > 0 then redis.call('ZREM', list, unpack(gone)) end", ''],
      ["#found < 200 and '' or last", "''"],
    ],
  },
  {
    file: 'lua/rate.lua',
    tests: ['lua/rate', 'store/rates', 'http/rate-limit'],
    changes: [
      ['or ends > now + window then', 'then'],
      ['math.floor((left - given) / 10))', 'left - given)'],
      ['local left = math.max(0, limit - taken)', 'local left = limit - taken'],
      ["if given > 0 then redis.call('SET'", "if given > 1 then redis.call('SET'"],
    ],
  },
  {
    file: 'lua/feed.lua',
    tests: ['store/events', 'http/events'],
    changes: [
      [
        'found[#found + 1], found[#found + 2] = entry[1], entry[2][2]',
        'found[#found + 1], found[#found + 2] = entry[1], entry[2][1]',
      ],
      ['isOlder = place < first', 'isOlder = false'],
      ['local kept = ms(math.max(0, now - retention))', "local kept = '-'"],
      ["or '(' .. after, '+', 'COUNT', max)", "or after, '+', 'COUNT', max)"],
    ],
  },
  {
    file: 'lua/feed-note.lua',
    tests: ['store/events', 'http/events'],
    changes: [
      ["before >= now - retention then return { 'kept' } end", "true then return { 'kept' } end"],
      ["'PX', ms(2 * retention + 3600000))", "'PX', ms(1))"],
    ],
  },
  {
    file: 'lua/relay.lua',
    tests: ['store/events'],
    changes: [
      ['if not isMissing and its + 0 > last then', 'if not isMissing then'],
      ['local isMissing = tonumber(befores[at]) > last', 'local isMissing = false'],
      ["redis.call('HSET', moved, unpack(words))", "redis.call('HSET', moved, words[1], words[2])"],
      ["redis.pcall('SPUBLISH', feed, newest)", ''],
      ["redis.call('PEXPIREAT', moved, ms(now + retention + 86400000))", ''],
    ],
  },
  {
    file: 'lua/trim.lua',
    tests: ['store/events'],
    changes: [
      [
        "if count > 0 then redis.call('LTRIM', outbox, count, -1) end",
        "if count > 0 then redis.call('LTRIM', outbox, count + 1, -1) end",
      ],
      ['<= upto do', '< upto do'],
      ['if last and tonumber(last) <= upto then', 'if last then'],
    ],
  },
  {
    file: 'lua/outbox.lua',
    tests: ['store/events'],
    changes: [
      ['<= after', '< after'],
      ['from + max - 1))', 'from + max))'],
    ],
  },
  {
    file: 'lua/probe.lua',
    tests: ['store/readiness', 'store/checks'],
    changes: [
      ["if ARGV[4] ~= '' and ARGV[4] ~= mark then", 'if ARGV[4] ~= mark then'],
      ["if isFull(1e9) then return { 'no_room', mark, replaced, now } end", ''],
    ],
  },
  {
    file: 'lua/inbox-set.lua',
    tests: ['lua/notices', 'http/inbox-settings'],
    changes: [
      ['if given and given <= version then', 'if false then'],
      ["redis.call('PEXPIREAT', settings, ms(now + 60000))", ''],
      ["redis.pcall('SPUBLISH', inbox, 'set')", ''],
      ["set[i] = asked[i] ~= '' and asked[i] or was[i]", "set[i] = asked[i] ~= '' and asked[i] or '0'"],
    ],
  },
  {
    file: 'lua/groups.lua',
    tests: ['http/groups'],
    changes: [
      ['(not other or one and isBehind(other, one)) and one or other', 'one or other'],
      ['if pending + without > 0 then', 'if pending > 0 then'],
      ["if after == '' then", "if after == '' or after == '.-' then"],
      ['if #items >= limit or looks <= 0 then', 'if #items > limit or looks <= 0 then'],
    ],
  },
  {
    file: 'lua/inbox-tidy.lua',
    tests: ['http/inbox-metrics', 'http/inbox-settings', 'http/inboxes'],
    changes: [
      ["if isEmpty then redis.call('ZREM', index, name) end", "redis.call('ZREM', index, name)"],
      ["if status ~= 'caught' then ended[#ended + 1] = member end", 'ended[#ended + 1] = member'],
      ["list .. ':settings', list .. ':per-group', groupKeys(list) }", '}'],
    ],
  },
  {
    file: 'lua/webhook-create.lua',
    tests: ['store/webhooks', 'http/webhooks', 'webhooks/deliveries'],
    changes: [
      ["if redis.call('ZCARD', webhooks) >= max then", "if redis.call('ZCARD', webhooks) > max then"],
      ["if made[1] then return { 'created', made } end", ''],
      ["newest and newest[1] or '0-0'", "'0-0'"],
    ],
  },
  {
    file: 'lua/webhook-change.lua',
    tests: ['store/webhooks', 'http/webhooks', 'webhooks/deliveries'],
    changes: [
      ['if isRotated and found[4] ~= token then', 'if isRotated then'],
      [
        "redis.call('HDEL', key, 'disabled', 'failing', 'replay', 'replay_to')",
        "redis.call('HDEL', key, 'disabled', 'replay', 'replay_to')",
      ],
      ["redis.call('HSET', key, 'cursor', newest and newest[1] or '0-0')", ''],
    ],
  },
  {
    file: 'lua/webhook-claim.lua',
    tests: ['store/webhooks', 'webhooks/deliveries'],
    changes: [
      ['local again = isRepeat and webhook[5] or ms(now + lease)', 'local again = ms(now + lease)'],
      ["if not isRepeat then redis.call('ZADD', due, again, id) end", ''],
      ['if back >= 1000 then', 'if back >= 1000000000 then'],
    ],
  },
  {
    file: 'lua/webhook-delete.lua',
    tests: ['store/webhooks', 'http/webhooks', 'webhooks/deliveries'],
    changes: [
      [
        "if before == redis.call('ZREM', webhooks, id) then redis.call('ZREM', tenants, tenant) end",
        "redis.call('ZREM', webhooks, id)",
      ],
    ],
  },
  {
    file: 'lua/webhook-plan.lua',
    tests: ['store/webhooks', 'http/webhooks', 'webhooks/deliveries'],
    changes: [
      ["if count >= max and deliveries ~= '' then return { 'deliveries_full' } end", ''],
      ["if not redis.call('HGET', pending, id) then", 'if true then'],
      ['found[3] ~= before or', ''],
      ["redis.call('HDEL', key, 'replay', 'replay_to')", "redis.call('HDEL', key, 'replay')"],
    ],
  },
  {
    file: 'lua/webhook-replay.lua',
    tests: ['store/webhooks', 'http/webhooks', 'webhooks/deliveries'],
    changes: [
      ['begun_earlier and found[3] or from', 'from'],
      ["if found[2] then return { 'disabled' } end", ''],
      ['end_count + 0 > count', 'end_count + 0 < count'],
    ],
  },
  {
    file: 'lua/webhook-tried.lua',
    tests: ['store/webhooks', 'webhooks/deliveries', 'webhooks/schedule'],
    changes: [
      [
        "if not found[1] or tried ~= ARGV[4] then return { 'unknown' } end",
        "if not found[1] then return { 'unknown' } end",
      ],
      ["if found[2] then redis.call('HDEL', key, 'failing') end", ''],
      ["now - found[2] >= tonumber(ARGV[9]) and 'failing'", "'failing'"],
      ["redis.call('ZADD', due, ms(now + ARGV[8]), id)", "redis.call('ZADD', due, ms(now), id)"],
      ["redis.call('LTRIM', over, -100, -1)", ''],
      ["redis.call('DEL', due, pending)", ''],
      ["redis.pcall('SPUBLISH', feed, newest)", ''],
      ["redis.call('ZREM', due, id)", ''],
    ],
  },
]
