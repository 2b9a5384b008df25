// Shows a picture large, over the page. Without script the link leads to the picture itself.

import { createButton, createElement } from "./page.js";

export function enableLightbox() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.file[data-full]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openLightbox(link);
  });
}

function openLightbox(link) {
  const small = link.querySelector("img");
  const dialog = createElement("dialog", { className: "lightbox" });
  dialog.setAttribute("aria-label", small?.alt ?? "Picture");
  const image = createElement("img", { src: link.dataset.full, alt: small?.alt ?? "" });
  dialog.append(createButton("✕", "Close", () => dialog.close()), image);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { dialog.remove(); link.focus(); });
  document.body.append(dialog);
  dialog.showModal();
}
