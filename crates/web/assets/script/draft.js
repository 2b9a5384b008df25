// The form to write a message, and what the tab keeps of it: the draft and the messages that were not sent yet. They
// survive leaving the page, a lost connection and an ended session, as long as the tab is open.

import { STORAGE_PREFIX, byId, createButton, space, thread, user } from "./page.js";

export const composeForm = byId("compose");
export const textField = byId("text");

const replyNotice = byId("answering");
const refusalNotice = byId("refused");

// Another user of the same tab has drafts of their own.
const STORAGE_NAME = `${STORAGE_PREFIX}draft ${user} ${space} ${thread}`;
const NOTHING = { text: "", replyTo: "", unsent: [] };

function readStored() {
  try {
    const stored = JSON.parse(sessionStorage.getItem(STORAGE_NAME));
    return Array.isArray(stored?.unsent) ? { ...NOTHING, ...stored } : NOTHING;
  } catch {
    return NOTHING;
  }
}

function store(change) {
  const content = { ...readStored(), ...change };
  try {
    if (content.text || content.unsent.length) sessionStorage.setItem(STORAGE_NAME, JSON.stringify(content));
    else sessionStorage.removeItem(STORAGE_NAME);
  } catch {
    // The storage is full or forbidden. What is on the page is still there.
  }
}

export function storeDraft() {
  store({ text: textField.value, replyTo: composeForm.elements.reply_to.value });
}

// A message to send takes the place of the draft, in one step, so that it is never stored twice or not at all.
export function storeUnsent(message) {
  store({ text: "", replyTo: "", unsent: [...readStored().unsent, message] });
}

export function forgetUnsent(id) {
  store({ unsent: readStored().unsent.filter((message) => message.id !== id) });
}

// Fills the form with the stored draft. Answers with the messages that are still to be sent.
export function restoreDraft() {
  const { text, replyTo, unsent } = readStored();
  textField.value ||= text;
  if (text && replyTo) beginReply(replyTo);
  return unsent;
}

export function clearForm() {
  textField.value = "";
  endReply();
}

// Puts a message that the node refused back into the form, where it can be changed.
export function returnToForm({ id, text, replyTo }, reason) {
  textField.value = text;
  if (replyTo) beginReply(replyTo);
  else endReply();
  forgetUnsent(id);
  storeDraft();
  // Screen readers announce what changes in view.
  refusalNotice.hidden = false;
  refusalNotice.textContent = reason;
}

export function hideRefusal() {
  refusalNotice.hidden = true;
}

export function beginReply(eventId) {
  composeForm.elements.reply_to.value = eventId;
  replyNotice.hidden = false;
  replyNotice.textContent = `Replying to ${byId(`m-${eventId}`)?.dataset.author ?? "a message"}. `;
  replyNotice.append(createButton("Cancel", "Cancel the reply", endReply));
}

function endReply() {
  composeForm.elements.reply_to.value = "";
  replyNotice.hidden = true;
}
