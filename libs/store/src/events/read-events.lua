-- A request's events after a sequence number. Those that stood for text that a snapshot holds by now are missing.
-- ARGV: 1 id, 2 after, 3 the most
-- Returns: {{sequence, body JSON, preview bytes or ''}, …}
--- @include "emit-event"
local id, after, events = ARGV[1], tonumber(ARGV[2]), {}
local sequence, createdAtMs, position = unpack(redis.call('HMGET', key('request', id), 'sequence', 'createdAtMs', 'position'))
-- A request that waits has no log yet.
if sequence == '1' and after < 1 then return { { '1', queuedBody(createdAtMs, position), '' } } end
local hasPreviews = redis.call('EXISTS', key('previews', id)) == 1
for _, entry in ipairs(redis.call('XRANGE', key('events', id), string.format('%.0f-0', after + 1), '+', 'COUNT', ARGV[3])) do
  local number = string.match(entry[1], '^%d+')
  events[#events + 1] = { number, entry[2][2], hasPreviews and redis.call('HGET', key('previews', id), number) or '' }
end
return events
