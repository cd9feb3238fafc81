-- Wireshark's dissector pgsql has no table of dissectors for CopyData, so this postdissector takes what it found. A capture
-- that begins after START_REPLICATION does not tell the version: the preferences do.
local outer = protocols[carried].proto
outer.prefs.version = Pref.uint("Version", 0, "The protocol version of captures that begin after START_REPLICATION; 0 for none")
outer.prefs.parallel = Pref.bool("Parallel", false, "Whether such a session has the option streaming = parallel")

local query_of = Field.new("pgsql.query")
local body_of = Field.new("pgsql.copydata")
local is_of_client = Field.new("pgsql.frontend")
local stream_of = Field.new("tcp.stream")
local number_of = Field.new("frame.number")

-- The session that a query begins; nil for any query but START_REPLICATION. Physical replication has no version.
local function session_of(query)
  local text = query:lower()
  if not text:find("^%s*start_replication") then return nil end
  local is_logical = text:find('^%s*start_replication%s+slot%s+"?[%w_]+"?%s+logical%s')
  local session = new_session(is_logical and tonumber(text:match("proto_version\"?%s+'(%d+)'")) or nil)
  session.facts.parallel = text:match("streaming\"?%s+'(%w+)'") == "parallel"
  return session
end

-- The last packet that told its session's state. Wireshark may look at packets without fields at first, and later in any
-- order; the state of a packet is right only if all packets before it have been looked at.
local progress = 0

function outer.init()
  sessions, states, progress = {}, {}, 0
end

function outer.dissector(_, pinfo, tree)
  if not number_of() then return end
  local is_next = pinfo.number == progress + 1
  if is_next then progress = pinfo.number end
  local stream = stream_of()
  if not stream then return end
  local connection = stream.value
  if is_next then
    for _, query in ipairs({ query_of() }) do
      sessions[connection] = session_of(query.value) or false
    end
    if sessions[connection] == nil and outer.prefs.version > 0 then
      sessions[connection] = new_session(outer.prefs.version)
      sessions[connection].facts.parallel = outer.prefs.parallel
    end
  end
  local session = sessions[connection]
  local side = is_of_client()
  local sender = side and side.value and "client" or "server"
  for index, body in ipairs({ body_of() }) do
    local key = pinfo.number .. ":" .. index
    if states[key] or (is_next and session) then
      local state, is_first = state_of(key, session)
      dissect(carried, body.range:tvb(), pinfo, tree, sender, session, state, is_first)
    end
  end
end

-- A listener with a filter makes Wireshark give fields to the first look.
local listener = Listener.new("frame", "pgsql")
function listener.packet() end

register_postdissector(outer)
