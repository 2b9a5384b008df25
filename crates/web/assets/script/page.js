// What the server says about this page, and the helpers that most modules need.

// Who reads the page, the space and the thread that it shows, and the journal position that it was read at.
export const { user, space, thread, position } = document.body.dataset;
export const spacePath = `/s/${encodeURIComponent(space ?? "")}`;
export const threadPath = `${spacePath}/t/${thread}`;

// Everything that the script keeps in the tab is stored under names that begin so.
export const STORAGE_PREFIX = "anteroom ";

export function byId(id) {
  return document.getElementById(id);
}

export function createElement(tag, properties = {}) {
  return Object.assign(document.createElement(tag), properties);
}

// A button for a tool. The label says to screen readers and on hover what a short text or a symbol cannot.
export function createButton(text, label, onClick) {
  const button = createElement("button", { type: "button", className: "quiet", textContent: text, title: label });
  button.setAttribute("aria-label", label);
  button.addEventListener("click", onClick);
  return button;
}

// Asks the node, and answers null if it cannot be reached. The header `x-part` makes it describe problems as JSON
// instead of showing a page about them.
export function sendRequest(path, options = {}) {
  const headers = { "x-part": "1", ...options.headers };
  return fetch(path, { ...options, headers, credentials: "same-origin" }).catch(() => null);
}

// Fetches HTML. Null stands for every failure, also for a connection that breaks halfway.
export async function fetchHtml(path) {
  const answer = await sendRequest(path);
  return answer?.ok ? answer.text().catch(() => null) : null;
}
