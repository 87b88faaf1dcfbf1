-- Names as in connection/keys.ts: `base` is `<prefix>:v2:{<model>}`, one hash tag, so all of them live in one slot.
-- connection/keys.test.ts compares both.
local function key(kind, id)
  return base .. ':' .. kind .. ':' .. id
end

-- By Redis, ms: callers' clocks differ.
local function timeMs()
  local seconds, microseconds = unpack(redis.call('TIME'))
  return seconds * 1000 + math.floor(microseconds / 1000)
end
