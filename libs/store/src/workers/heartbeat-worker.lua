-- Says that a worker lives, how fast it is, and how far it has read its inbox.
-- ARGV: 1 worker id, 2 incarnation, 3 pace JSON or '', 4 id of the first inbox entry that it may not have, or ''
-- Returns: 'alive' | 'buried' (it was taken for dead, and what it had is others': it must register again)
--- @include "worker-pool"
local workerId = ARGV[1]
local worker = key('worker', workerId)
local incarnation, list, pace = unpack(redis.call('HMGET', worker, 'incarnation', 'list', 'pace'))
if incarnation ~= ARGV[2] then return 'buried' end
redis.call('ZADD', heardKey, redis.call('HGET', sweptKey, 'count') or 0, workerId)
redis.call('HSET', worker, 'heartbeatAtMs', timeMs(), 'pace', ARGV[3])
if isOpen(list) then changePace(pace, ARGV[3]) end
if ARGV[4] ~= '' then redis.call('XTRIM', key('inbox', workerId), 'MINID', ARGV[4]) end
return 'alive'
