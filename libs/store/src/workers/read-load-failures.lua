-- What cannot be loaded, as far as it was said lately.
-- KEYS: 1 failures
-- Returns: {{when it was said, ms, facts, JSON}, …}
local seconds, microseconds = unpack(redis.call('TIME'))
local nowMs = seconds * 1000 + math.floor(microseconds / 1000)
local failures = {}
for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
  local untilMs, atMs, facts = string.match(value, '^(%d+) (%d+) (.*)$')
  if tonumber(untilMs) > nowMs then failures[#failures + 1] = { atMs, facts } end
end
return failures
