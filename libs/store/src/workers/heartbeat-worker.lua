-- Records a heartbeat of a worker, its throughput, and how far it has read its inbox.
-- ARGV: 1 worker id, 2 incarnation, 3 throughput JSON or '', 4 id after the last inbox entry that it has read, or ''
-- Returns: 'alive' | 'reaped' (it was reaped and its requests were requeued: it must register again)
--- @include "worker-pool"
local workerId = ARGV[1]
local worker = key('worker', workerId)
local incarnation, list, throughput = unpack(redis.call('HMGET', worker, 'incarnation', 'list', 'throughput'))
if incarnation ~= ARGV[2] then return 'reaped' end
redis.call('ZADD', heartbeatsKey, redis.call('HGET', sweptKey, 'count') or 0, workerId)
redis.call('HSET', worker, 'heartbeatAtMs', timeMs(), 'throughput', ARGV[3])
if isOpen(list) then changeThroughput(throughput, ARGV[3]) end
if ARGV[4] ~= '' then redis.call('XTRIM', key('inbox', workerId), 'MINID', ARGV[4]) end
return 'alive'
