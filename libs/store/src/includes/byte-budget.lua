-- What an owner's requests keep here, in bytes: `open` is the most that open ones may come to, the other fields what ended ones
-- left, by the eighth of a result's time in which that goes.
local function bytesOf(owner, nowMs)
  local sum, fields = 0, redis.call('HGETALL', key('bytes', owner))
  for position = 1, #fields, 2 do
    if fields[position] == 'open' or tonumber(fields[position]) > nowMs then
      sum = sum + fields[position + 1]
    else
      redis.call('HDEL', key('bytes', owner), fields[position])
    end
  end
  return sum
end

local function claimBytes(owner, bytes)
  redis.call('HINCRBY', key('bytes', owner), 'open', bytes)
  redis.call('PERSIST', key('bytes', owner))
end

-- At a request's end: in place of what it might have come to, what it came to.
local function keepBytes(id, owner, nowMs, resultTtlMs)
  local claimed, written = unpack(redis.call('HMGET', key('request', id), 'bytes', 'written'))
  local part = math.ceil(resultTtlMs / 8)
  redis.call('HINCRBY', key('bytes', owner), math.ceil((nowMs + resultTtlMs) / part) * part, written or 0)
  if redis.call('HINCRBY', key('bytes', owner), 'open', -claimed) == 0 then
    redis.call('PEXPIRE', key('bytes', owner), resultTtlMs + part)
  end
end
