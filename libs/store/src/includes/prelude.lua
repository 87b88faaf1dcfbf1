-- Prepended to every script. The one key is `<prefix>:v3:{<model>}`: all key names are built from it, share its hash
-- tag and live in one slot. Names as in connection/keys.ts.
local base = KEYS[1]
local function key(kind, id) return base .. ':' .. kind .. ':' .. id end

-- Returns the time of Redis in ms, because clocks of callers differ. It is the same throughout a script.
local scriptMs
local function timeMs()
  if scriptMs then return scriptMs end
  local seconds, microseconds = unpack(redis.call('TIME'))
  scriptMs = seconds * 1000 + math.floor(microseconds / 1000)
  return scriptMs
end
