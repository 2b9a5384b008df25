// Writing a message: submitting the form, keeping the draft, and the keyboard.

import { clearForm, composeForm, hideRefusal, restoreDraft, storeDraft, storeUnsent, textField } from "./draft.js";
import { scrollToEnd } from "./message-list.js";
import { sendMessage } from "./outbox.js";

export function enableComposing() {
  composeForm.addEventListener("submit", (event) => {
    event.preventDefault();
    submitMessage();
  });
  textField.addEventListener("input", storeDraft);
  enableKeyboard();
  if (!composeForm.hidden) restoreDraft().forEach(sendMessage);
}

function submitMessage() {
  const text = textField.value;
  if (!text.trim()) return;
  hideRefusal();
  const id = `w-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  const message = { id, text, replyTo: composeForm.elements.reply_to.value };
  storeUnsent(message);
  sendMessage(message);
  scrollToEnd();
  clearForm();
}

// On a phone Enter starts a new line, since its keyboard has no Shift+Enter.
function enableKeyboard() {
  const hasKeyboard = matchMedia("(pointer: fine)").matches;
  if (hasKeyboard) textField.placeholder += " Enter sends, Shift+Enter starts a new line.";
  textField.addEventListener("keydown", (event) => {
    // While an input method composes a character, Enter accepts it.
    if (event.key !== "Enter" || event.isComposing) return;
    if (event.ctrlKey || hasKeyboard && !event.shiftKey) {
      event.preventDefault();
      composeForm.requestSubmit();
    }
  });
}
