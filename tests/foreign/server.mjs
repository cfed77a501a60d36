// A chat server that speaks the JSON frames of docs/protocol.md and shares no code with uproar.
// Usage: node server.mjs [PORT]    It prints `listening on ws://127.0.0.1:PORT` and ends on SIGTERM.
import { WebSocketServer } from "ws";

const TOKEN = /^([A-Za-z0-9_-]{1,64})(?:\.(\d{1,3}))?$/;
const devices = new Map(); // user -> Map(device -> socket)
const rooms = new Map(); // room -> Set(user)

function identify(request) {
  const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  const query = new URL(request.url, "ws://localhost").searchParams.get("token");
  const [, user, device = "0"] = TOKEN.exec(bearer ?? query ?? "") ?? [];
  return user && Number(device) <= 255 ? { user, device: Number(device) } : null;
}

const answer = (socket, frame) => socket.send(JSON.stringify(frame));
const refuse = (socket, code, frame, reason) =>
  answer(socket, { type: "error", code, msgId: frame?.msgId, reason });

function recipients({ type, from, to }) {
  if (type === "group") return rooms.get(to);
  return type === "system" ? [to] : new Set([to, from]);
}

function relay(socket, frame) {
  const { type, msgId, from, to, content, timestamp } = frame;
  if (![msgId, from, to, content].every((field) => typeof field === "string") || !msgId || msgId.length > 64)
    return refuse(socket, "malformed", frame, "msgId, from, to and content must be strings");
  if (!Number.isInteger(timestamp)) return refuse(socket, "malformed", frame, "timestamp must be Unix milliseconds");
  if (from !== socket.user || (type === "system" && from !== "platform"))
    return refuse(socket, "not_allowed", frame, `${socket.user} may not send as ${from}`);
  if (type === "group" && !rooms.get(to)?.has(from))
    return refuse(socket, "not_a_member", frame, `${from} is not in ${to}`);
  answer(socket, { type: "ack", msgId });
  const text = JSON.stringify(frame);
  for (const user of recipients(frame))
    for (const peer of devices.get(user)?.values() ?? []) if (peer !== socket) peer.send(text);
}

function changeMembership(socket, { type, room }) {
  if (typeof room !== "string") return refuse(socket, "malformed", null, "room must be a string");
  const members = rooms.get(room) ?? rooms.set(room, new Set()).get(room);
  if (type === "join") members.add(socket.user);
  else members.delete(socket.user);
  answer(socket, { type: type === "join" ? "joined" : "left", room, members: members.size });
}

function handle(socket, frame) {
  switch (frame?.type) {
    case "chat": case "group": case "system": return relay(socket, frame);
    case "join": case "leave": return changeMembership(socket, frame);
    case "ping": return answer(socket, { type: "pong", seq: frame.seq });
    default: return refuse(socket, "unknown_type", frame, `no such type: ${frame?.type}`);
  }
}

function receive(socket, data) {
  let parsed;
  try {
    parsed = JSON.parse(data.toString());
  } catch (error) {
    return refuse(socket, "malformed", null, error.message);
  }
  for (const frame of Array.isArray(parsed) ? parsed : [parsed]) handle(socket, frame);
}

const server = new WebSocketServer({
  host: "127.0.0.1",
  port: Number(process.argv[2] ?? 0),
  maxPayload: 1 << 20,
  handleProtocols: () => false,
  verifyClient: ({ req }, done) => (identify(req) ? done(true) : done(false, 401)),
});

server.on("connection", (socket, request) => {
  const { user, device } = identify(request);
  const mine = devices.get(user) ?? devices.set(user, new Map()).get(user);
  mine.get(device)?.close(4001, "replaced");
  mine.set(device, socket);
  socket.user = user;
  socket.on("message", (data) => receive(socket, data));
  socket.on("error", () => {});
  socket.on("close", () => mine.get(device) === socket && mine.delete(device));
});
server.on("listening", () => console.log(`listening on ws://127.0.0.1:${server.address().port}`));
process.on("SIGTERM", () => process.exit(0));
