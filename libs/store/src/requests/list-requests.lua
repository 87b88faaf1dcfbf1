-- Finds requests of an owner in one shard, newest first. Skips expired ones that are still listed.
-- ARGV: 1 owner, 2 from which time of admission on backwards (upper bound of ZRANGE), 3 at the time of argument 2 list
--       only ids below this one, or '', 4 min time of admission (lower bound of ZRANGE)
--       5 states, separated by commas, or '' for all, 6 max requests to return, 7 max requests to examine
-- Returns: {1 if there may be more | 0, id and time of the last examined request, id, time, id, time, …}
local owner, from, beforeId, untilMs, states, limit, maxExamined = unpack(ARGV)
limit, maxExamined = tonumber(limit), tonumber(maxExamined)
local listed, chunkLength = key('listed', owner), 100
local result, found, examined, offset = { 0, '', '' }, 0, 0, 0
while true do
  local entries = redis.call('ZRANGE', listed, from, untilMs, 'BYSCORE', 'REV', 'LIMIT', offset, chunkLength, 'WITHSCORES')
  for at = 1, #entries, 2 do
    local id, createdAtMs = entries[at], entries[at + 1]
    if not (beforeId ~= '' and createdAtMs == from and id >= beforeId) then
      if found == limit or examined == maxExamined then
        result[1] = 1
        return result
      end
      examined, result[2], result[3] = examined + 1, id, createdAtMs
      local state = redis.call('HGET', key('request', id), 'state')
      if state and (states == '' or string.find(',' .. states .. ',', ',' .. state .. ',', 1, true)) then
        found = found + 1
        result[2 + 2 * found], result[3 + 2 * found] = id, createdAtMs
      end
    end
  end
  if #entries < 2 * chunkLength then return result end
  offset = offset + chunkLength
end
