-- Whether a request is there for this owner; '*' is ourselves, for whom every one is.
-- Returns nil when it is, else 'gone' (its time is over) | 'unknown' (never was, or is somebody else's).
local function ownershipRefusal(id, owner)
  local actual = redis.call('HGET', key('request', id), 'owner')
  local isGone = not actual
  if isGone then actual = redis.call('GET', key('gone', id)) end
  if not actual or (owner ~= '*' and owner ~= actual) then return 'unknown' end
  return isGone and 'gone' or nil
end
