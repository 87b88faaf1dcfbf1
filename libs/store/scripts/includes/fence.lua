-- A worker may write only while its delivery is its own and the request is open. A lock that ran out while Redis was away,
-- so that nobody could renew it, goes back to the delivery it was of: as long as the job is in BullMQ's active list,
-- no stalled check has given it to anybody else.
local reclaimedLockMs = 5000 -- the next heartbeat renews it

local function holdsLock(id, token)
  local holder = redis.call('GET', lockKey(id))
  if holder then return holder == token end
  if redis.call('HGET', key('request', id), 'token') ~= token then return false end
  if not redis.call('LPOS', base .. ':queue:active', id) then return false end
  redis.call('SET', lockKey(id), token, 'PX', reclaimedLockMs)
  return true
end

-- Returns nil when it may, else 'lost' | 'ended'.
local function refusal(id, token)
  if not holdsLock(id, token) then return 'lost' end
  if redis.call('HGET', key('request', id), 'state') ~= 'running' then return 'ended' end
end
