// Scrolling through a conversation: where it opens, earlier and later messages, and news below what is in view.

import { decorateMessages } from "./message-tools.js";
import {
  isAtEnd, isLatestShown, markLatestShown, messageList, newestEventId, oldestEventId, pixelsToEnd, scrollToEnd,
} from "./message-list.js";
import { byId, fetchHtml, threadPath } from "./page.js";
import { parseFragment } from "./personalise.js";

// The next page is fetched before the reader arrives at the edge.
const NEAR_EDGE_PIXELS = 200;
// How many messages the server puts on a page; a shorter page is the last one.
const PAGE_MESSAGES = 50;

const newBelow = byId("below");

// Opens at the first new message or at the end, unless the address names a message.
export function scrollToStart() {
  if (!isLatestShown() || location.hash && location.hash !== "#end") return;
  scrollToEnd();
  messageList.querySelector(".new")?.scrollIntoView({ block: "center" });
}

export function watchScrolling() {
  newBelow.addEventListener("click", () => {
    if (isLatestShown()) scrollToEnd();
    else location.assign(`${threadPath}#end`);
  });
  messageList.addEventListener("scroll", () => {
    if (isLatestShown() && isAtEnd()) newBelow.hidden = true;
    if (messageList.scrollTop < NEAR_EDGE_PIXELS) loadOlder();
    if (pixelsToEnd() < NEAR_EDGE_PIXELS) loadNewer();
  }, { passive: true });
}

// Tells somebody who reads further up that a message has arrived.
export function showNewBelow() {
  newBelow.hidden = isLatestShown() && isAtEnd();
}

function loadOlder() {
  return loadPage("older", () => `before=${oldestEventId()}`, (edge, messages) => {
    const height = messageList.scrollHeight;
    edge.after(messages);
    // What is in view stays in view.
    messageList.scrollTop += messageList.scrollHeight - height;
  });
}

async function loadNewer() {
  const isLast = await loadPage("newer", () => `after=${newestEventId()}`, (edge, messages) => edge.before(messages));
  if (isLast) markLatestShown();
}

let isLoading = false;

// Fetches the page behind the link with this id and inserts it. Says whether there are no more.
async function loadPage(linkId, query, insert) {
  const edge = byId(linkId)?.closest(".edge");
  if (!edge || isLoading) return false;
  isLoading = true;
  const html = await fetchHtml(`${threadPath}/part?${query()}`);
  let isLast = false;
  if (html !== null) {
    const messages = parseFragment(html);
    isLast = messages.querySelectorAll(".msg").length < PAGE_MESSAGES;
    insert(edge, messages);
    if (isLast) edge.remove();
    decorateMessages();
  }
  isLoading = false;
  return isLast;
}
