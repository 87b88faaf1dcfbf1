-- What the requests before a rank cost: the first of them exactly, the rest as these on average. A string, as Redis cuts
-- the fractions of numbers off.
local function costAhead(rank)
  local counted, cost = 32, 0
  if not rank or rank == 0 then return '0' end
  local ahead = redis.call('ZRANGE', queuedKey, 0, math.min(rank, counted) - 1)
  for _, id in ipairs(ahead) do cost = cost + (redis.call('HGET', key('request', id), 'cost') or 0) end
  return tostring(cost * rank / #ahead)
end
