-- Keeps a worker alive for another TTL, and the locks of what it says it has when they ran out while Redis was away. Ends
-- its other leases whose lock is lost: the worker may never have heard of them, when a batch was popped and the
-- connection broke before it arrived.
-- KEYS: 1 base
-- ARGV: 1 worker id, 2 incarnation, 3 heartbeat TTL ms, 4 now ms, 5 pace JSON or '', then `<id> <token>` of each it has
-- Returns: 'alive' | 'buried' (it was taken for dead: it must register again)
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
--- @include "fence"
if redis.call('HGET', key('worker', ARGV[1]), 'incarnation') ~= ARGV[2] then return 'buried' end
redis.call('SET', key('alive', ARGV[1]), '', 'PX', ARGV[3])
redis.call('HSET', key('worker', ARGV[1]), 'heartbeatAtMs', ARGV[4])
if ARGV[5] ~= '' then redis.call('HSET', key('worker', ARGV[1]), 'pace', ARGV[5]) end
local has = {}
for argument = 6, #ARGV do has[ARGV[argument]] = true end
for _, lease in ipairs(redis.call('HKEYS', key('leases', ARGV[1]))) do
  local id, token = string.match(lease, '^(%S+) (%S+)$')
  local isHeld = has[lease] and holdsLock(id, token) or redis.call('GET', lockKey(id)) == token
  if not isHeld then releaseLease(ARGV[1], id, token, 'all', tonumber(ARGV[4])) end
end
return 'alive'
