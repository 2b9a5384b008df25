// The list of messages on a conversation page: which messages it shows, and where it is scrolled to.

import { byId } from "./page.js";

// Null on pages that are no conversation.
export const messageList = byId("messages");

// Closer to the end than this, the reader is following the conversation.
const NEAR_END_PIXELS = 80;

let latestShown = messageList?.dataset.latest === "1";

// Whether the list reaches up to the present. A list that ends earlier must not be appended to: it would have a gap.
export function isLatestShown() {
  return latestShown;
}

export function markLatestShown() {
  latestShown = true;
}

// The event id of a message; a message that is still being sent has none.
export function eventIdOf(message) {
  return message?.id.startsWith("m-") ? message.id.slice(2) : undefined;
}

export function oldestEventId() {
  return eventIdOf(messageList.querySelector(".msg:not(.sending)"));
}

export function newestEventId() {
  return eventIdOf([...messageList.querySelectorAll(".msg:not(.sending)")].at(-1));
}

export function pixelsToEnd() {
  return messageList.scrollHeight - messageList.scrollTop - messageList.clientHeight;
}

export function isAtEnd() {
  return pixelsToEnd() < NEAR_END_PIXELS;
}

export function scrollToEnd() {
  messageList.scrollTop = messageList.scrollHeight;
}
