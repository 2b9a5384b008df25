// A conversation: new messages as they come, endless scrolling, sending in place.

import { enableComposing } from "./compose.js";
import { openEventStream } from "./event-stream.js";
import { addMessage, refreshMessage } from "./message-updates.js";
import { decorateMessages } from "./message-tools.js";
import { retryFailed } from "./outbox.js";
import { spacePath, thread, user } from "./page.js";
import { showLastRead, watchReading } from "./read-marker.js";
import { scrollToStart, showNewBelow, watchScrolling } from "./scrolling.js";
import { addTypingUser, removeTypingUser, watchTyping } from "./typing.js";

export function startConversation() {
  showLastRead();
  scrollToStart();
  watchScrolling();
  decorateMessages();
  enableComposing();
  addEventListener("online", retryFailed);
  watchTyping();
  followThread();
  watchReading();
  // Hides the button that marks a thread as read without script.
  document.documentElement.classList.add("script");
}

function followThread() {
  openEventStream(`&thread=${encodeURIComponent(thread)}`, {
    "message.created": receiveMessage,
    "message.changed": refreshMessage,
    "message.reacted": refreshMessage,
    "thread.deleted": () => location.assign(spacePath),
    typing: ({ user: name }) => addTypingUser(name),
    reset: () => location.reload(),
  }, retryFailed);
}

function receiveMessage(message) {
  removeTypingUser(message.author);
  if (message.author !== user) showNewBelow();
  addMessage(message);
}
