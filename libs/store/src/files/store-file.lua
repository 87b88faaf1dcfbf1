-- Stores an uploaded file, unless its owner has too many files or bytes.
-- KEYS: 1 base of all files
-- ARGV: 1 owner, 2 id, 3 fields (JSON), 4 size in bytes, 5 TTL ms, 6 max files, 7 max bytes
--       8 the bytes, or a reference to them
-- Returns: {'stored'} | {'full', files, bytes} (of the owner)
local files, nowMs = key('owner', ARGV[1]), timeMs()
local count, total, gone = 0, 0, {}
local entries = redis.call('HGETALL', files)
for at = 1, #entries, 2 do
  local bytes, expiresAtMs = string.match(entries[at + 1], '^(%d+) (%d+) ')
  if tonumber(expiresAtMs) <= nowMs then
    gone[#gone + 1] = entries[at]
  else
    count, total = count + 1, total + tonumber(bytes)
  end
end
if #gone > 0 then redis.call('HDEL', files, unpack(gone)) end
if count + 1 > tonumber(ARGV[6]) or total + tonumber(ARGV[4]) > tonumber(ARGV[7]) then
  return { 'full', count, total }
end
redis.call('HSET', files, ARGV[2], ARGV[4] .. ' ' .. (nowMs + ARGV[5]) .. ' ' .. ARGV[3])
redis.call('PEXPIRE', files, ARGV[5])
redis.call('SET', key('data', ARGV[2]), ARGV[8], 'PX', ARGV[5])
return { 'stored' }
