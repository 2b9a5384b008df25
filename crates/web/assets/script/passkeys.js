// Passkeys: the node sends a challenge, the browser's authenticator signs it, the node checks the signature.
// Loaded only by pages that have a form for it (see offerPasskeys).

import { showAlert } from "./forms.js";
import { sendRequest } from "./page.js";

const AUTHENTICATOR_ERRORS = {
  NotAllowedError: "You cancelled the passkey request, or it timed out.",
  InvalidStateError: "This device already has a passkey for this account.",
};

// Signs in, joins or adds a passkey, as the form's address says.
export async function usePasskey(form) {
  showAlert(form, "");
  if (!copyFields(form) || !form.reportValidity()) return;
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    location.assign(await exchange(form.dataset.passkey, new URLSearchParams(new FormData(form))));
  } catch (error) {
    showAlert(form, AUTHENTICATOR_ERRORS[error.name] ?? error.message);
  }
  button.disabled = false;
  button.focus();
}

// Fills the fields that repeat a field of the page's other form, such as the name of whoever joins.
function copyFields(form) {
  for (const copy of form.querySelectorAll("[data-from]")) {
    const original = document.querySelector(`main form input[name=${copy.dataset.from}]`);
    if (!original.reportValidity()) return false;
    copy.value = original.value;
  }
  return true;
}

// Carries the challenge and its answer between node and authenticator. Answers with the page to go to.
async function exchange(path, fields) {
  const { ticket, publicKey } = await postForJson(`${path}/begin`, { body: fields });
  const credential = path === "/passkey"
    ? await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) })
    : await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) });
  const body = JSON.stringify({ ticket, credential, next: fields.get("next") });
  const { next } = await postForJson(path, { headers: { "content-type": "application/json" }, body });
  return next;
}

async function postForJson(path, options) {
  const answer = await sendRequest(path, { method: "POST", ...options });
  const content = await answer?.json().catch(() => null);
  if (answer?.ok && content) return content;
  throw new Error(content?.detail
    ? `The request failed: ${content.detail}. What to do: ${content.action}.`
    : "The node did not answer. Check the connection and try again.");
}
