-- Who is served next: start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996) over owners, priority and arrival
-- inside an owner's line. A request's score in `queued` is its start tag, in virtual time: as much as its owner's requests
-- before it cost, divided by the weight, counted from when the line began. Dispatch is by tag, so owners with waiting
-- work share the service by weight, a rank in `queued` is the position, and an owner who was away has saved nothing up.
-- What has been chosen, or was running before, stands in front of all tags, in negative scores.
local linesKey, sharesKey = base .. ':lines', base .. ':shares'
local firstInLine = -9007199254740992

local function lineKey(owner)
  return base .. ':line:' .. owner
end

-- What a request takes of its owner's share.
local function shareOf(id)
  local cost, weight = unpack(redis.call('HMGET', key('request', id), 'cost', 'weight'))
  -- A request whose time is over is still in line until the janitor sweeps it out.
  return (cost or 0) / (weight or 1)
end

-- Into its owner's line; those behind it there move back by its share.
local function joinQueue(id, owner, order)
  local line = lineKey(owner)
  redis.call('ZADD', line, order, id)
  redis.call('SADD', linesKey, owner)
  local rank, share, tag = redis.call('ZRANK', line, id), shareOf(id), nil
  local behind = redis.call('ZRANGE', line, rank + 1, -1)
  local ahead = rank > 0 and redis.call('ZRANGE', line, rank - 1, rank - 1)[1]
  if behind[1] then
    tag = redis.call('ZSCORE', queuedKey, behind[1])
  elseif ahead then
    tag = redis.call('ZSCORE', queuedKey, ahead) + shareOf(ahead)
  else
    local now, finished = unpack(redis.call('HMGET', sharesKey, 'now', 'owner:' .. owner))
    tag = math.max(now or 0, finished or 0)
  end
  for _, other in ipairs(behind) do redis.call('ZINCRBY', queuedKey, share, other) end
  redis.call('ZADD', queuedKey, tag, id)
end

-- Out of its owner's line, if it is still there. reason: 'chosen' or 'overtook' (BullMQ gave it out before its turn), and
-- its owner pays; 'dropped', and those behind it move up.
local function leaveLine(id, reason)
  local request = key('request', id)
  local owner = redis.call('HGET', request, 'owner')
  local line = lineKey(owner)
  local rank = redis.call('ZRANK', line, id)
  if not rank then return end
  local tag, share = tonumber(redis.call('ZSCORE', queuedKey, id)), shareOf(id)
  if reason ~= 'dropped' then
    local now = tonumber(redis.call('HGET', sharesKey, 'now') or 0)
    -- A tag before its turn may be far ahead of those that wait, and who comes new would have to wait for all of them.
    if reason == 'chosen' then redis.call('HSET', sharesKey, 'now', math.max(now, tag)) end
    redis.call('HSET', sharesKey, 'owner:' .. owner, tag + share)
  else
    for _, other in ipairs(redis.call('ZRANGE', line, rank + 1, -1)) do redis.call('ZINCRBY', queuedKey, -share, other) end
  end
  redis.call('ZREM', line, id)
  if redis.call('ZCARD', line) == 0 then redis.call('SREM', linesKey, owner) end
end

-- Out of every index an id whose request is no more; whose it was is not known any longer.
local function dropOrphan(id)
  redis.call('ZREM', queuedKey, id)
  redis.call('ZREM', deadlinesKey, id)
  for _, owner in ipairs(redis.call('SMEMBERS', linesKey)) do
    redis.call('ZREM', lineKey(owner), id)
    if redis.call('ZCARD', lineKey(owner)) == 0 then redis.call('SREM', linesKey, owner) end
  end
end

-- Calls visit(id) for what waits in BullMQ's prioritized set, in the order of dispatch, until it returns false.
local function eachWaiting(visit)
  local pageSize, from = 64, 0
  while true do
    local page = redis.call('ZRANGE', queuedKey, from, from + pageSize - 1)
    for _, id in ipairs(page) do
      if redis.call('ZSCORE', base .. ':queue:prioritized', id) and not visit(id) then return end
    end
    if #page < pageSize then return end
    from = from + pageSize
  end
end
