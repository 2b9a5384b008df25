// Pages that keep themselves up to date by fetching themselves again: the operator's pages and the list of threads.

import { openEventStream } from "./event-stream.js";
import { byId, fetchHtml } from "./page.js";
import { formatTimes } from "./personalise.js";

const POLL_MS = 1000;
// Several events often arrive together; one fetch is enough for all of them.
const GATHER_MS = 150;

const LIST_EVENTS = ["message.created", "thread.created", "thread.changed", "thread.deleted", "thread.read", "reset"];

async function fetchPage(path) {
  const html = await fetchHtml(path);
  return html === null ? null : new DOMParser().parseFromString(html, "text/html");
}

// Replaces the part of an operator's page that is marked as live, unless somebody is using it.
export function pollLivePart() {
  const part = document.querySelector("[data-live]");
  if (!part) return;
  let lastHtml;
  setInterval(async () => {
    if (document.hidden || part.contains(document.activeElement)) return;
    const fresh = (await fetchPage(part.dataset.live))?.querySelector("[data-live]");
    if (!fresh || fresh.innerHTML === lastHtml) return;
    lastHtml = fresh.innerHTML;
    part.replaceChildren(...fresh.childNodes);
    formatTimes(part);
  }, POLL_MS);
}

export function followThreadList() {
  const list = byId("threads");
  if (!list) return;
  let timer;
  const refreshLater = () => {
    clearTimeout(timer);
    timer = setTimeout(() => refreshThreadList(list), GATHER_MS);
  };
  openEventStream("", Object.fromEntries(LIST_EVENTS.map((name) => [name, refreshLater])));
}

async function refreshThreadList(list) {
  const page = await fetchPage(location.href);
  if (!page) return;
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.thread : undefined;
  list.replaceChildren(...(page.getElementById("threads")?.childNodes ?? []));
  formatTimes(list);
  // The focused link was replaced: people who navigate by keyboard keep their place.
  if (focused) list.querySelector(`[data-thread="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}
