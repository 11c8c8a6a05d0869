#!lua flags=allow-oom
-- The epoch of the registers: a random id for the data as this server has them.  A server that may lack what another
-- has acknowledged is known by its run id, by the master_replid drawn at its promotion, and by the sentinels' count of
-- failovers; then the first client that comes gives the data another epoch.  Every swap compares the epoch, so none
-- that was meant for earlier data can take effect, over whatever connection and however late it comes.
--@unguarded
-- KEYS  the epoch, a hash
-- ARGV  a random id; of a group of Sentinel: the number of the newest failover, else ''
-- Answer the id of the epoch
local call = redis.call
local info = redis.pcall('INFO', 'server', 'replication')
local run = type(info) == 'string' and info:match('run_id:(%x+)')
if not run then return redis.error_reply('NOPERM INFO is refused, by which a server says that it is another one') end
local second = info:match('master_replid2:(%x+)') or ''
local promoted = second:find('[^0]') and info:match('master_replid:(%x+)') or '-' -- '-': not promoted, or long ago
local id, mark, config = unpack(call('HMGET', KEYS[1], 'id', 'mark', 'config'))
local is_same = id and mark and (mark == run .. '/' .. promoted or promoted == '-' and mark:match('^%x+') == run)
if is_same and config == ARGV[2] then return id end
call('HSET', KEYS[1], 'id', ARGV[1], 'mark', run .. '/' .. promoted, 'config', ARGV[2])
return ARGV[1]
