-- The requests of each owner, for lists: `listed` by time of admission, `expiring` by the time at which they expire.
-- Each call removes up to 10 expired ones, so both sets hold little more than what is stored. They expire with their
-- last entry.

-- Lists a request until `expiresAtMs`, or changes until when it is listed. Returns when the owner's last one expires.
local function listRequest(id, owner, createdAtMs, expiresAtMs)
  local listed, expiring = key('listed', owner), key('expiring', owner)
  redis.call('ZADD', listed, createdAtMs, id)
  redis.call('ZADD', expiring, expiresAtMs, id)
  local expired = redis.call('ZRANGE', expiring, '-inf', timeMs(), 'BYSCORE', 'LIMIT', 0, 10)
  if expired[1] then
    redis.call('ZREM', listed, unpack(expired))
    redis.call('ZREM', expiring, unpack(expired))
  end
  local lastMs = tonumber(redis.call('ZRANGE', expiring, -1, -1, 'WITHSCORES')[2] or timeMs())
  for _, set in ipairs({ listed, expiring }) do redis.call('PEXPIRE', set, math.max(1, lastMs - timeMs())) end
  return lastMs
end

local function unlistRequest(id, owner)
  for _, kind in ipairs({ 'listed', 'expiring' }) do redis.call('ZREM', key(kind, owner), id) end
end
