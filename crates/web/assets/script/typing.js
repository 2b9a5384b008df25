// Typing indicators: tells others that the reader is typing, and shows who else is.

import { textField } from "./draft.js";
import { byId, sendRequest, space, thread, user } from "./page.js";

// A notice is repeated while somebody types, and expires a little later than the next one is due.
const REPEAT_MS = 3000;
const EXPIRE_MS = 5000;
const RENEW_MS = 1000;

// Users who are typing, and when the notice of each expires.
const typingUsers = new Map();

export function addTypingUser(name) {
  if (name !== user) typingUsers.set(name, Date.now() + EXPIRE_MS);
  showTypingUsers();
}

// Whoever has sent a message has stopped typing it.
export function removeTypingUser(name) {
  typingUsers.delete(name);
  showTypingUsers();
}

function showTypingUsers() {
  const now = Date.now();
  for (const [name, expiry] of typingUsers) if (expiry < now) typingUsers.delete(name);
  const verb = typingUsers.size === 1 ? "is" : "are";
  byId("typing").textContent = typingUsers.size ? `${[...typingUsers.keys()].join(", ")} ${verb} typing…` : "";
}

export function watchTyping() {
  let reportedAt = 0;
  textField.addEventListener("input", () => {
    if (Date.now() - reportedAt < REPEAT_MS) return;
    reportedAt = Date.now();
    sendRequest(`/v1/threads/${thread}/typing`, { method: "POST", headers: { "x-space": space } });
  });
  setInterval(showTypingUsers, RENEW_MS);
}
