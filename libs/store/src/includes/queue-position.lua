-- Dispatch order: requeued requests first (`front`), then start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996)
-- over owners, by priority and arrival within the queue of an owner (`queued`). A place in `places` has a start tag in
-- virtual time: the cost of the owner's places before it, divided by the weight. Places belong to owners, not to
-- requests: the n-th request in the queue of an owner has the owner's n-th place. So a change touches one place and one
-- member of `queued`, and a rank in `places` is a queue position.
local frontKey, placesKey = base .. ':front', base .. ':places'
local sharesKey, waitingKey = base .. ':shares', base .. ':waiting'
local firstNumber = 1000000000

-- Returns the member of `places`. Equal tags sort by number, so the places of an owner stay in order.
local function placeOf(owner, number)
  return string.format('%010d', number) .. owner
end

-- Returns the state of fair queueing. Of the owner: numbers of its first and last place, and `finish`, the virtual time
-- at which its next service begins. Of all owners: the virtual time `now`, how many owners have places (`owners`), and
-- the cost of the queue.
local function sharesOf(owner)
  local first, last, finish, now, owners, cost = unpack(redis.call('HMGET', sharesKey,
    'first:' .. owner, 'last:' .. owner, 'finish:' .. owner, 'now', 'owners', 'cost'))
  return { first = tonumber(first) or firstNumber, last = tonumber(last) or firstNumber - 1,
    finish = tonumber(finish) or 0, now = tonumber(now) or 0, owners = tonumber(owners) or 0,
    cost = tonumber(cost) or 0 }
end

-- Returns the number of requests ahead; nil if the request is not queued.
local function positionOf(id, owner, shares)
  local rank = redis.call('ZRANK', key('queued', owner), id)
  if not rank then return redis.call('ZRANK', frontKey, id) or nil end
  return redis.call('ZCARD', frontKey) + redis.call('ZRANK', placesKey, placeOf(owner, shares.first + rank))
end

-- Estimates the cost of the requests ahead by the mean cost in the queue. A string: Redis truncates numbers.
local function costAhead(position, shares)
  if not position or position == 0 then return '0' end
  return tostring(shares.cost * position / redis.call('ZCARD', waitingKey))
end
