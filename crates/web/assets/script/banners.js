// Banners above the page: the node cannot be reached, or the session has ended.

import { byId, createElement, sendRequest } from "./page.js";

const UNREACHABLE = "unreachable";
const SIGNED_OUT = "signed-out";

function showBanner(id, ...content) {
  if (byId(id)) return;
  const banner = createElement("p", { id, className: "bad banner", role: "alert" });
  banner.append(...content);
  document.querySelector("main").before(banner);
}

export function showUnreachable() {
  showBanner(UNREACHABLE, "The node does not answer. This page reconnects automatically.");
}

function showSignedOut() {
  const next = encodeURIComponent(location.pathname);
  const link = createElement("a", { href: `/in?next=${next}`, textContent: "Sign in again" });
  showBanner(SIGNED_OUT, "Your session has ended. ", link, ". This tab keeps what you typed.");
}

export function isSignedOut() {
  return byId(SIGNED_OUT) !== null;
}

export function hideBanners() {
  byId(UNREACHABLE)?.remove();
  byId(SIGNED_OUT)?.remove();
}

// Finds out why a request failed: any page that needs a session tells an ended one from a node that is down.
export async function checkSession() {
  const answer = await sendRequest("/me");
  if (answer?.status === 401) showSignedOut();
  if (answer) byId(UNREACHABLE)?.remove();
  else showUnreachable();
}
