-- Stores an API key, unless too many are stored or the other keys of its name have other limits.
-- KEYS: 1 hash of all stored keys
-- ARGV: 1 id, 2 fields (JSON), 3 max keys
-- Returns: {'added'} | {'full'} | {'other-limits', fields of another key of the name (JSON)}
local new, count = cjson.decode(ARGV[2]), 0
local entries = redis.call('HGETALL', base)
for at = 1, #entries, 2 do
  if entries[at] ~= 'version' then
    count = count + 1
    local stored = cjson.decode(entries[at + 1])
    for _, limit in ipairs({ 'weight', 'requestsPerMinute', 'openRequests' }) do
      if stored.name == new.name and stored[limit] ~= new[limit] then return { 'other-limits', entries[at + 1] } end
    end
  end
end
if count >= tonumber(ARGV[3]) then return { 'full' } end
redis.call('HSET', base, ARGV[1], ARGV[2], 'version', ARGV[1])
return { 'added' }
