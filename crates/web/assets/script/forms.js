// Additions to forms: copying a link, resizing a picture, offering passkeys, and clearing the tab at sign-out.

import { STORAGE_PREFIX, byId, createElement, sendRequest } from "./page.js";

const PICTURE_PIXELS = 128;

// Adds a button to every link that is shown to be passed on.
export function addCopyButtons() {
  for (const link of document.querySelectorAll("input.link")) {
    link.addEventListener("focus", () => link.select());
    // Browsers offer the clipboard under HTTPS and on localhost only.
    if (!navigator.clipboard) continue;
    const button = createElement("button", { type: "button", className: "quiet", textContent: "Copy" });
    const status = createElement("span", { className: "note", role: "status" });
    button.addEventListener("click", () => navigator.clipboard.writeText(link.value).then(
      () => { status.textContent = " Copied."; },
      () => { status.textContent = " The browser blocked the clipboard. Select the link and copy it."; }));
    link.after(button, status);
  }
}

// Crops a picture to a square and scales it down before it is uploaded.
export function enablePictureUpload() {
  const form = byId("picture");
  if (!form) return;
  form.hidden = false;
  form.querySelector("input").addEventListener("change", async (event) => {
    const file = event.target.files[0];
    if (!file) return;
    const image = await createImageBitmap(file).catch(() => null);
    if (!image) {
      form.querySelector(".note").textContent = "This browser cannot read the file as a picture. Choose another file.";
      return;
    }
    cropToSquare(image).toBlob(async (body) => {
      if (await sendRequest("/me/picture", { method: "POST", body })) location.reload();
    }, "image/png");
  });
}

function cropToSquare(image) {
  const side = Math.min(image.width, image.height);
  const [left, top] = [(image.width - side) / 2, (image.height - side) / 2];
  const canvas = createElement("canvas", { width: PICTURE_PIXELS, height: PICTURE_PIXELS });
  canvas.getContext("2d").drawImage(image, left, top, side, side, 0, 0, PICTURE_PIXELS, PICTURE_PIXELS);
  return canvas;
}

// Shows the passkey forms where the browser can use them.
export function offerPasskeys() {
  // Browsers make passkeys for host names, never for bare addresses.
  const isAddress = /^[\d.]+$|^\[/.test(location.hostname);
  if (isAddress || !window.PublicKeyCredential?.parseRequestOptionsFromJSON) return;
  document.querySelector("[data-without-passkeys]")?.remove();
  const forms = document.querySelectorAll("[data-passkey]");
  if (!forms.length) return;
  // Loaded now and not at the click: a node that is upgraded meanwhile no longer serves this version.
  const loading = import("./passkeys.js");
  for (const form of forms) {
    const start = () => loading.then(
      ({ usePasskey }) => usePasskey(form),
      () => showAlert(form, "The passkey script did not load. Reload the page."));
    form.hidden = false;
    form.querySelector("button").addEventListener("click", start);
    form.addEventListener("submit", (event) => { event.preventDefault(); start(); });
  }
}

// Shows what went wrong below a form; an empty text hides it.
export function showAlert(form, text) {
  const alert = form.querySelector("[role=alert]");
  alert.textContent = text;
  alert.hidden = !text;
}

// Drafts and unsent messages must not be found by whoever uses this tab next.
export function clearStorageAtSignOut() {
  document.querySelector("form[action='/out']")?.addEventListener("submit", () => {
    const names = Object.keys(sessionStorage).filter((name) => name.startsWith(STORAGE_PREFIX));
    for (const name of names) sessionStorage.removeItem(name);
  });
}
