-- A worker may write only while its delivery's lock is its own and the request is open.
-- Returns nil when it may, else 'lost' | 'ended'.
local function refusal(id, token)
  if redis.call('GET', lockKey(id)) ~= token then return 'lost' end
  if redis.call('HGET', key('request', id), 'state') ~= 'running' then return 'ended' end
end
