// Sending messages without leaving the page, one after the other. A message that failed is sent again, under the same
// id, so that the node takes it once however often it arrives.

import { checkSession } from "./banners.js";
import { forgetUnsent, returnToForm, textField } from "./draft.js";
import { isAtEnd, messageList, scrollToEnd } from "./message-list.js";
import { insertMessages, removeEmptyNotice } from "./message-updates.js";
import { createButton, createElement, sendRequest, threadPath, user } from "./page.js";
import { markRead } from "./read-marker.js";

const SEND_TIMEOUT_MS = 30000;
const RETRY_MS = 10000;

let lastInQueue = Promise.resolve();
const queued = new Set();
const failed = new Set();

// Shows a message in grey, since it is not durable yet, and sends it.
export function sendMessage({ id, text, replyTo }) {
  const article = createElement("article", { className: "msg sending", id: `sending-${id}` });
  const header = createElement("header");
  const status = createElement("span", { className: "note" });
  header.append(status);
  article.append(
    createElement("span", { className: "face h11", textContent: "…" }),
    header,
    createElement("div", { className: "text", textContent: text }));
  removeEmptyNotice();
  messageList.append(article);
  enqueue({ id, text, replyTo, article, status, timer: undefined });
}

export function retryFailed() {
  for (const message of [...failed]) enqueue(message);
}

function enqueue(message) {
  if (queued.has(message)) return;
  queued.add(message);
  failed.delete(message);
  clearTimeout(message.timer);
  message.article.classList.remove("failed");
  message.status.textContent = "Sending…";
  lastInQueue = lastInQueue
    .then(() => send(message))
    .catch(() => showFailure(message, { isFinal: false }))
    .finally(() => queued.delete(message));
}

async function send(message) {
  const { id, text, replyTo, article } = message;
  // The node refuses it if somebody else has signed in meanwhile.
  const body = new URLSearchParams({ id, text, reply_to: replyTo, as: user });
  const answer = await sendRequest(threadPath, { method: "POST", body, signal: AbortSignal.timeout(SEND_TIMEOUT_MS) });
  if (answer?.ok) {
    showSent(message, await answer.text());
    return;
  }
  const detail = (await answer?.json().catch(() => null))?.detail;
  const isFinal = Boolean(answer) && answer.status < 500 && ![408, 429].includes(answer.status);
  // What would be refused again goes back to the form, unless the next message is being typed there.
  if (!isFinal || textField.value || !article.isConnected) {
    showFailure(message, { detail, isFinal });
    return;
  }
  article.remove();
  returnToForm(message, explainRefusal(answer.status, detail));
  if (answer.status === 401) checkSession();
}

function explainRefusal(status, detail) {
  if (status === 401) return "The node did not accept the message because your session has ended. The text stays here.";
  if (status === 413) return "The message is too long. Send it in parts.";
  return `The node did not accept the message: ${detail ?? `it answered with status ${status}`}.`;
}

function showSent({ id, article }, html) {
  const wasAtEnd = isAtEnd();
  forgetUnsent(id);
  article.remove();
  insertMessages(html);
  if (wasAtEnd) scrollToEnd();
  markRead();
}

function showFailure(message, { detail, isFinal }) {
  const { id, article, status } = message;
  // The stream has shown the message meanwhile: it was sent, and only the answer was lost.
  if (!article.isConnected) {
    forgetUnsent(id);
    return;
  }
  article.classList.add("failed");
  const reason = detail ?? (isFinal ? "the node refused it" : "the node did not answer");
  status.textContent = `Not sent: ${reason}. ${isFinal ? "" : "Retrying. "}`;
  status.append(
    createButton("Try again", "Try again to send this message", () => enqueue(message)),
    createButton("Discard", "Discard this message", () => discard(message)));
  if (isFinal) return;
  failed.add(message);
  message.timer = setTimeout(() => { if (failed.has(message)) enqueue(message); }, RETRY_MS);
}

function discard(message) {
  failed.delete(message);
  clearTimeout(message.timer);
  forgetUnsent(message.id);
  message.article.remove();
}
