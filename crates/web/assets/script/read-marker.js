// How far the reader has read: shown when the page opens, and reported when they have seen the end.

import { isAtEnd, isLatestShown, messageList, newestEventId } from "./message-list.js";
import { byId, createElement, sendRequest, space, thread, threadPath, user } from "./page.js";

// The end counts as seen when it was in view this long.
const SEEN_MS = 400;

// Draws a line below the last message that was read, or links to that message if it is on an earlier page.
export function showLastRead() {
  const eventId = new URLSearchParams(location.search).get("new") ?? messageList.dataset.read;
  if (!eventId) return;
  const lastRead = byId(`m-${eventId}`);
  if (lastRead) drawLineBelow(lastRead);
  else if (isLatestShown() && byId("older")) linkToLastRead(eventId);
}

function drawLineBelow(lastRead) {
  const messages = [...messageList.querySelectorAll(".msg")];
  const following = messages.slice(messages.indexOf(lastRead) + 1);
  if (!following.some((message) => message.dataset.author !== user)) return;
  lastRead.after(createElement("p", { className: "new", textContent: "New" }));
}

function linkToLastRead(eventId) {
  const paragraph = createElement("p", { className: "new" });
  const href = `${threadPath}?around=${eventId}&new=${eventId}#m-${eventId}`;
  paragraph.append(createElement("a", { href, textContent: "Go to where you left off" }));
  messageList.before(paragraph);
}

let reported = null;
let timer = null;

// Reports the newest message as read, if the reader sees it.
export function markRead() {
  clearTimeout(timer);
  timer = setTimeout(reportRead, SEEN_MS);
}

async function reportRead() {
  const newest = newestEventId();
  if (!newest || newest === reported || document.hidden || !isLatestShown() || !isAtEnd()) return;
  reported = newest;
  const answer = await sendRequest(`/v1/threads/${thread}/read`, {
    method: "PUT", headers: { "content-type": "application/json", "x-space": space },
    body: JSON.stringify({ message: newest }),
  });
  if (answer?.ok) messageList.dataset.read = newest;
  else reported = null;
}

export function watchReading() {
  messageList.addEventListener("scroll", markRead, { passive: true });
  document.addEventListener("visibilitychange", markRead);
  markRead();
}
