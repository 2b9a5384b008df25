// What every message gets on the page: buttons to react and reply, and a quotation of the message that it replies to.

import { beginReply, composeForm, textField } from "./draft.js";
import { eventIdOf, messageList } from "./message-list.js";
import { createButton, createElement, sendRequest, space, spacePath } from "./page.js";

const QUOTE_LETTERS_MAX = 80;

// Decorates the messages that are new in the list.
export function decorateMessages() {
  for (const message of messageList.querySelectorAll(".msg:not(.ready)")) {
    message.classList.add("ready");
    const eventId = eventIdOf(message);
    if (!eventId) continue;
    quoteIfShown(message.querySelector("a.re"));
    // Who may not write has no use for the buttons.
    if (!composeForm.hidden) addTools(message, eventId);
  }
}

function addTools(message, eventId) {
  const tools = createElement("span", { className: "tools" });
  tools.append(
    createButton("👍", "React with thumbs up", () => addReaction(eventId, "👍")),
    createButton("↩", "Reply to this message", () => {
      beginReply(eventId);
      textField.focus();
    }),
    message.querySelector(".more"));
  message.querySelector("header").append(tools);
}

function addReaction(eventId, reaction) {
  return sendRequest(`${spacePath}/m/${eventId}/react`, { method: "POST", body: new URLSearchParams({ reaction }) });
}

// A link to the original is replaced by its first words if the original is on the page.
function quoteIfShown(link) {
  if (!link) return;
  const path = decodePath(link.pathname);
  const original = [...messageList.querySelectorAll(".msg")].find((message) =>
    [eventIdOf(message), message.dataset.id].some((id) => path === `/s/${space}/m/${id}`));
  if (original) quoteOriginal(link, original);
}

function decodePath(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function quoteOriginal(link, original) {
  const line = original.querySelector(".text").innerText.trim().split("\n")[0];
  const shortened = line.length > QUOTE_LETTERS_MAX ? `${line.slice(0, QUOTE_LETTERS_MAX)}…` : line;
  link.textContent = `↩ ${original.dataset.author}: ${shortened}`;
  link.href = `#${original.id}`;
}

// Replies quote what a message says now, not what it said before it was edited.
export function renewQuotes(original) {
  for (const link of messageList.querySelectorAll(`a.re[href="#${original.id}"]`)) quoteOriginal(link, original);
}
