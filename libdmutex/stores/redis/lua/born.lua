#!lua flags=allow-oom
-- Since when this server has its identity: from its start, or since it took over from another server, whose data it
-- has.  The first client notes the time.  A server that was a replica in between is another server, although its run id
-- is unchanged: a promotion draws a new master_replid, and keeps the previous id as the second.  In a group
-- of Sentinel a replaced master continues as a master for a while, and may be promoted again with its own data,
-- unchanged; only the sentinels know of that, by the epoch of the failover.  A server of a quorum is new without a
-- mark, however long it has run: its data may have been deleted.
--@unguarded
-- KEYS  the server's mark, a hash
-- ARGV  of a group of Sentinel: the epoch, 1 before the first failover; of a quorum: '' and 'part'
-- Answer us of the server's clock; 0: the server does not say its identity
local call = redis.call
local info = redis.pcall('INFO', 'server', 'replication')
if type(info) ~= 'string' then return 0 end
local id, uptime = info:match('run_id:(%x+)'), info:match('uptime_in_seconds:(-?%d+)')
if not (id and uptime) then return 0 end
local second = info:match('master_replid2:(%x+)') or ''
local epoch = second:find('[^0]') and info:match('master_replid:(%x+)') or '-' -- '-': not promoted, or long ago
local mark_key, config, part = KEYS[1], unpack(ARGV)
local is_part = part == 'part'
if config == '' then config = nil end
local noted, noted_since, mark_of_first, noted_config =
  unpack(call('HMGET', mark_key, 'mark', 'since', 'server', 'config'))
local mark, since, t = noted or '', tonumber(noted_since or nil), call('TIME')
local now = t[1] * 1000000 + t[2]
local is_same = since and (mark == id .. '/' .. epoch or epoch == '-' and mark:match('^%x+') == id)
if config and config ~= noted_config then
  call('HSET', mark_key, 'config', config)
  is_same = is_same and not noted_config
end
if is_same then return since end
-- mark_of_first: the mark of version 0.1.0, which does not know epochs.  No mark after a promotion: the replica may
-- have been empty, in the middle of a synchronisation, while the master had owners.  Sentinels also promote a server
-- that was restarted without data and never became a replica: after a failover its uptime says nothing.
local is_after_switch = config and config ~= '1' or epoch ~= '-'
since = (noted or noted_since or mark_of_first or is_part or is_after_switch) and now or
  now - math.max(uptime - 1, 0) * 1000000 -- of two clocks in whole seconds
call('HSET', mark_key, 'mark', id .. '/' .. epoch, 'since', string.format('%.0f', since))
return since
