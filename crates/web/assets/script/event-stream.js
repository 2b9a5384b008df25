// The live stream of events. It begins at the journal position that the page was read at, so nothing is missed between
// the page and the stream, and resumes at the last event that arrived.

import { checkSession, hideBanners, isSignedOut, showUnreachable } from "./banners.js";
import { position, space } from "./page.js";

// The node ends streams now and then, and browsers reconnect within seconds: a shorter break is no outage.
const OUTAGE_MS = 5000;
const REOPEN_MS = 3000;
const REOPEN_SIGNED_OUT_MS = 30000;

// Opens the stream with these query parameters. `handlers` maps the name of an event to a function of its data.
export function openEventStream(query, handlers, onOpen = () => {}) {
  let lastId = position;
  let source;
  const open = () => {
    const after = lastId ? `&after=${encodeURIComponent(lastId)}` : "";
    source = new EventSource(`/v1/events?space=${encodeURIComponent(space)}${query}${after}`);
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) lastId = event.lastEventId;
        handle(JSON.parse(event.data || "{}"));
      });
    }
    source.onopen = () => {
      hideBanners();
      onOpen();
    };
    source.onerror = () => {
      // A browser reconnects by itself, except to a stream that was refused.
      if (source.readyState === EventSource.CLOSED) reopenLater();
      else reportOutageLater(source);
    };
  };
  const reopenLater = async () => {
    await checkSession();
    setTimeout(open, isSignedOut() ? REOPEN_SIGNED_OUT_MS : REOPEN_MS);
  };
  const reportOutageLater = (failing) => setTimeout(() => {
    if (failing === source && failing.readyState === EventSource.CONNECTING) showUnreachable();
  }, OUTAGE_MS);
  open();
  addEventListener("pagehide", () => source.close());
}
