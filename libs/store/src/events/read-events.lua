-- A request's events after a sequence number. Those that stood for text that a snapshot holds by now are missing.
-- ARGV: 1 id, 2 after, 3 the most, 4 for how long from now its progress is read as it comes, ms; 0 to leave that as it is
-- Returns: {{sequence, body JSON, preview bytes or ''}, …}
--- @include "emit-event"
--- @include "worker-pool"
local id, after, followMs, events = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4]), {}
local sequence, createdAtMs, position, state, followedUntilMs =
  unpack(redis.call('HMGET', key('request', id), 'sequence', 'createdAtMs', 'position', 'state', 'followedUntilMs'))
-- Said again when a third of the time is over, however many follow.
if followMs > 0 and (state == 'queued' or state == 'running') and (tonumber(followedUntilMs) or 0) < timeMs() + followMs * 2 / 3 then
  -- A Redis that is full lets nobody follow, and lets all read.
  local said = redis.pcall('HSET', key('request', id), 'followedUntilMs', timeMs() + followMs)
  local workerId, token = unpack(redis.call('HMGET', key('request', id), 'worker', 'token'))
  if token and type(said) == 'number' then sayToWorker(workerId, '{"type":"follow","token":"' .. token .. '","forMs":' .. followMs .. '}') end
end
-- A request that waits has no log yet.
if sequence == '1' and after < 1 then return { { '1', queuedBody(createdAtMs, position), '' } } end
local hasPreviews = redis.call('EXISTS', key('previews', id)) == 1
for _, entry in ipairs(redis.call('XRANGE', key('events', id), string.format('%.0f-0', after + 1), '+', 'COUNT', ARGV[3])) do
  local number = string.match(entry[1], '^%d+')
  events[#events + 1] = { number, entry[2][2], hasPreviews and redis.call('HGET', key('previews', id), number) or '' }
end
return events
