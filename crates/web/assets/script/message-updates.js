// Changes to the list of messages while the page is open: new messages, late ones, and changed ones.

import { decorateMessages, renewQuotes } from "./message-tools.js";
import { isAtEnd, isLatestShown, messageList, newestEventId, scrollToEnd } from "./message-list.js";
import { byId, fetchHtml, sendRequest, spacePath, threadPath } from "./page.js";
import { parseFragment } from "./personalise.js";
import { markRead } from "./read-marker.js";

// Inserts rendered messages: those on the page already are replaced, others are appended.
export function insertMessages(html) {
  for (const message of parseFragment(html).querySelectorAll(".msg")) {
    const shown = byId(message.id);
    if (shown) shown.replaceWith(message);
    else appendMessage(message);
  }
  removeEmptyNotice();
  decorateMessages();
}

export function removeEmptyNotice() {
  byId("nothing")?.remove();
}

// Unsent messages stay last, and so does the link to newer messages.
function appendMessage(message) {
  byId(`sending-${message.dataset.id}`)?.remove();
  const next = messageList.querySelector(".edge:has(#newer)") ?? messageList.querySelector(".sending");
  messageList.insertBefore(message, next);
}

// Shows a message that the stream announced.
export function addMessage(message) {
  const newest = newestEventId();
  const newestTime = newest && byId(`m-${newest}`).querySelector("time").dateTime;
  // An event that waited for something may be older than what is shown.
  const isLate = newestTime && Date.parse(message.created_at) < Date.parse(newestTime);
  return isLate ? insertLateMessages() : fetchNewMessages();
}

let isFetching = false;
let fetchAgain = false;

// Fetches what follows the newest message. An announcement that comes meanwhile causes one more fetch.
async function fetchNewMessages() {
  if (!isLatestShown()) return;
  if (isFetching) {
    fetchAgain = true;
    return;
  }
  isFetching = true;
  const wasAtEnd = isAtEnd();
  const after = newestEventId();
  const html = await fetchHtml(`${threadPath}/part${after ? `?after=${after}` : ""}`);
  if (html !== null) {
    insertMessages(html);
    if (wasAtEnd) scrollToEnd();
    markRead();
  }
  isFetching = false;
  if (fetchAgain) {
    fetchAgain = false;
    fetchNewMessages();
  }
}

// Fetches the latest page, whose order is the right one, and inserts what is missing before its successor.
async function insertLateMessages() {
  const html = await fetchHtml(`${threadPath}/part`);
  if (html === null) return;
  const messages = [...parseFragment(html).querySelectorAll(".msg")];
  messages.forEach((message, index) => {
    if (byId(message.id)) return;
    const next = messages.slice(index + 1).map((later) => byId(later.id)).find(Boolean);
    messageList.insertBefore(message, next ?? null);
  });
  decorateMessages();
}

// Fetches a message again after an edit, a deletion or a reaction.
export async function refreshMessage({ event }) {
  const shown = event && byId(`m-${event}`);
  if (!shown) return;
  const wasAtEnd = isAtEnd();
  const answer = await sendRequest(`${spacePath}/m/${event}/part`);
  if (answer?.ok) {
    insertMessages(await answer.text());
    renewQuotes(byId(shown.id));
    if (wasAtEnd) scrollToEnd();
  } else if (answer?.status === 404) {
    shown.remove();
  }
}
