-- What an owner's requests keep here: `open` is the most bytes that open ones may come to, the other fields what ended ones left, by
-- the eighth of a result's time in which that goes.
local function bytesOf(owner, nowMs)
  local sum, fields = 0, redis.call('HGETALL', key('bytes', owner))
  for position = 1, #fields, 2 do
    local isKept = fields[position] == 'open' or tonumber(fields[position]) > nowMs
    if isKept then sum = sum + fields[position + 1] else redis.call('HDEL', key('bytes', owner), fields[position]) end
  end
  return sum
end

local function claimBytes(owner, bytes)
  redis.call('HINCRBY', key('bytes', owner), 'open', bytes)
  redis.call('PERSIST', key('bytes', owner))
end

-- At a request's end: in place of what it might have come to, what it came to.
local function keepBytes(owner, claimed, written, nowMs, resultTtlMs)
  local bytes, part = key('bytes', owner), math.ceil(resultTtlMs / 8)
  redis.call('HINCRBY', bytes, math.ceil((nowMs + resultTtlMs) / part) * part, written)
  -- Minus zero is no number to Redis before 7.2.
  if redis.call('HINCRBY', bytes, 'open', 0 - claimed) == 0 then redis.call('PEXPIRE', bytes, resultTtlMs + part) end
end
