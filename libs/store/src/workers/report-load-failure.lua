-- Says that a model cannot be loaded somewhere, and forgets what was said too long ago.
-- KEYS: 1 failures   ARGV: 1 model and host, 2 facts, JSON, 3 how long it is shown, ms
-- Returns: 1
local seconds, microseconds = unpack(redis.call('TIME'))
local nowMs = seconds * 1000 + math.floor(microseconds / 1000)
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  if tonumber(string.match(fields[at + 1], '^%d+')) <= nowMs then redis.call('HDEL', KEYS[1], fields[at]) end
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f %.0f %s', nowMs + ARGV[3], nowMs, ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
