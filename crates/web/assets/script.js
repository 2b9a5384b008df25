// Anteroom. What pages can do beyond forms and links: live messages, endless scrolling, sending in place.
"use strict";
(() => {
  const body = document.body;
  const { user, space, thread, position } = body.dataset;
  const root = document.documentElement;
  root.classList.add("script");
  const byId = (id) => document.getElementById(id);
  const here = `/s/${encodeURIComponent(space ?? "")}`;
  const part = (path, options = {}) =>
    fetch(path, { ...options, headers: { "x-part": "1", ...options.headers }, credentials: "same-origin" });

  // Moments, by the reader's clock.
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const tellTimes = (within) => {
    for (const time of within.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      const isToday = at.toDateString() === new Date().toDateString();
      time.textContent = (isToday ? clock : date).format(at);
      time.title = date.format(at);
    }
  };

  // What only this reader's page knows: own messages, own reactions, mentions of oneself.
  const personalise = (within) => {
    tellTimes(within);
    for (const mention of within.querySelectorAll(".at")) {
      if (mention.textContent === `@${user}`) mention.classList.add("me");
    }
    for (const chip of within.querySelectorAll(".chip[data-reaction]")) {
      chip.classList.toggle("mine", chip.title.split(", ").includes(user));
    }
  };
  const parsed = (html) => {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    personalise(holder.content);
    return holder.content;
  };

  personalise(document);
  for (const link of document.querySelectorAll("input.link")) {
    link.addEventListener("focus", () => link.select());
    // Browsers have a clipboard for pages that nobody could have changed on the way.
    if (!navigator.clipboard) continue;
    const copy = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "Copy" });
    const told = Object.assign(document.createElement("span"), { className: "note", role: "status" });
    copy.addEventListener("click", () => navigator.clipboard.writeText(link.value).then(
      () => { told.textContent = " Copied."; },
      () => { told.textContent = " The browser does not allow it: select it and copy."; }));
    link.after(copy, told);
  }

  // Pages that show what is going on right now.
  const live = document.querySelector("[data-live]");
  if (live) {
    setInterval(async () => {
      if (document.hidden || live.contains(document.activeElement)) return;
      const answer = await part(live.dataset.live).catch(() => null);
      if (!answer?.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("[data-live]");
      if (fresh && fresh.innerHTML !== live.dataset.before) {
        live.dataset.before = fresh.innerHTML;
        live.replaceChildren(...fresh.childNodes);
        tellTimes(live);
      }
    }, 1000);
  }

  // Passkeys: the node asks, the browser answers.
  const makers = window.PublicKeyCredential;
  const isAddress = /^[\d.]+$|^\[/.test(location.hostname);
  const prove = async (form) => {
    const at = form.dataset.passkey;
    const alarm = form.querySelector("[role=alert]");
    const say = (text) => { alarm.textContent = text; alarm.hidden = !text; };
    say("");
    for (const copy of form.querySelectorAll("[data-from]")) {
      const origin = document.querySelector(`main form input[name=${copy.dataset.from}]`);
      if (!origin.reportValidity()) return;
      copy.value = origin.value;
    }
    if (!form.reportValidity()) return;
    const asked = async (path, options) => {
      const answer = await part(path, { method: "POST", ...options }).catch(() => null);
      const said = await answer?.json().catch(() => null);
      if (!answer?.ok || !said) {
        throw new Error(said?.detail ? `It did not work: ${said.detail}. What to do: ${said.action}.` : "The node did not answer.");
      }
      return said;
    };
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      const fields = new URLSearchParams(new FormData(form));
      const { ticket, publicKey } = await asked(`${at}/begin`, { body: fields });
      const credential = at === "/passkey"
        ? await navigator.credentials.get({ publicKey: makers.parseRequestOptionsFromJSON(publicKey) })
        : await navigator.credentials.create({ publicKey: makers.parseCreationOptionsFromJSON(publicKey) });
      const { next } = await asked(at, {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ticket, credential, next: fields.get("next") }),
      });
      location.assign(next);
    } catch (why) {
      // Whoever closes the browser's window for it knows why.
      const known = { NotAllowedError: "No passkey was chosen.", InvalidStateError: "There is one on this device already." };
      say(known[why.name] ?? why.message);
    }
    button.disabled = false;
    button.focus();
  };
  if (makers?.parseRequestOptionsFromJSON && !isAddress) {
    for (const form of document.querySelectorAll("[data-passkey]")) {
      form.hidden = false;
      form.querySelector("button").addEventListener("click", () => prove(form));
      form.addEventListener("submit", (event) => { event.preventDefault(); prove(form); });
    }
    document.querySelector("[data-without-passkeys]")?.remove();
  }

  // A picture is made small before it is sent.
  const picture = byId("picture");
  if (picture) {
    picture.hidden = false;
    picture.querySelector("input").addEventListener("change", async (event) => {
      const file = event.target.files[0];
      if (!file) return;
      const image = await createImageBitmap(file).catch(() => null);
      if (!image) {
        picture.querySelector(".note").textContent = "That is not a picture that this browser can read.";
        return;
      }
      const side = Math.min(image.width, image.height);
      const canvas = Object.assign(document.createElement("canvas"), { width: 128, height: 128 });
      canvas.getContext("2d").drawImage(
        image, (image.width - side) / 2, (image.height - side) / 2, side, side, 0, 0, 128, 128);
      canvas.toBlob(async (bytes) => {
        await part("/me/picture", { method: "POST", body: bytes });
        location.reload();
      }, "image/png");
    });
  }

  // Whoever was signed out elsewhere is told so, and where to go.
  const signIn = () => Object.assign(document.createElement("a"), {
    href: `/in?next=${encodeURIComponent(location.pathname)}`, textContent: "Sign in again",
  });
  const tell = (id, ...words) => {
    if (byId(id)) return;
    const told = Object.assign(document.createElement("p"), { id, className: "bad banner", role: "alert" });
    told.append(...words);
    document.querySelector("main").before(told);
  };
  const tellIfOut = async () => {
    const answer = await part("/me").catch(() => null);
    if (answer?.status === 401) tell("out", "You were signed out. ", signIn(), "; what you typed is kept.");
    if (answer) byId("gone")?.remove();
    else tellGone();
  };
  const tellGone = () => tell("gone", "The node does not answer. This page tries again by itself.");
  // Whoever signs out leaves nothing behind in this tab.
  document.querySelector("form[action='/out']")?.addEventListener("submit", () => {
    for (const name of Object.keys(sessionStorage)) if (name.startsWith("anteroom ")) sessionStorage.removeItem(name);
  });

  if (!space) return;

  // The list of threads, live.
  const threads = byId("threads");
  const listen = (query, handlers, whenBack = () => {}) => {
    let last = position;
    let source;
    const open = () => {
      const after = last ? `&after=${encodeURIComponent(last)}` : "";
      source = new EventSource(`/v1/events?space=${encodeURIComponent(space)}${query}${after}`);
      for (const [name, handle] of Object.entries(handlers)) {
        source.addEventListener(name, (event) => {
          if (event.lastEventId) last = event.lastEventId;
          handle(JSON.parse(event.data || "{}"));
        });
      }
      source.onopen = () => {
        byId("gone")?.remove();
        byId("out")?.remove();
        whenBack();
      };
      source.onerror = () => {
        // A stream that was refused is not opened again by the browser.
        if (source.readyState !== EventSource.CLOSED) {
          // The node ends streams now and then; browsers open them again within seconds.
          const failing = source;
          setTimeout(() => { if (failing === source && failing.readyState === EventSource.CONNECTING) tellGone(); }, 5000);
          return;
        }
        tellIfOut().then(() => setTimeout(open, byId("out") ? 30000 : 3000));
      };
    };
    open();
    addEventListener("pagehide", () => source.close());
  };
  if (threads) {
    let wanted = null;
    const renew = () => {
      clearTimeout(wanted);
      wanted = setTimeout(async () => {
        const answer = await part(location.href).catch(() => null);
        if (!answer?.ok) return;
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const focused = threads.contains(document.activeElement) ? document.activeElement.dataset.thread : undefined;
        threads.replaceChildren(...(page.getElementById("threads")?.childNodes ?? []));
        tellTimes(threads);
        // Whoever has tabbed to a thread stays there.
        if (focused) threads.querySelector(`[data-thread="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
      }, 150);
    };
    const names = ["message.created", "thread.created", "thread.changed", "thread.deleted", "thread.read", "reset"];
    listen("", Object.fromEntries(names.map((name) => [name, renew])));
  }

  // A conversation.
  const log = byId("messages");
  if (!log || !thread) return;
  const own = `${here}/t/${thread}`;
  const eventOf = (message) => message?.id.startsWith("m-") ? message.id.slice(2) : undefined;
  const newest = () => eventOf([...log.querySelectorAll(".msg:not(.sending)")].at(-1));
  const oldest = () => eventOf(log.querySelector(".msg:not(.sending)"));
  const isAtEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };
  let isLatest = log.dataset.latest === "1";
  // Where the reader left off, if that is on the page.
  const leftAt = new URLSearchParams(location.search).get("new") ?? log.dataset.read;
  const left = leftAt && byId(`m-${leftAt}`);
  const isUnread = (message) => message.dataset.author !== user;
  const following = left ? [...log.querySelectorAll(".msg")].filter((one) => left.compareDocumentPosition(one) & 4) : [];
  if (following.some(isUnread)) {
    left.after(Object.assign(document.createElement("p"), { className: "new", textContent: "New" }));
  }
  if (isLatest && leftAt && !left && byId("older")) {
    const back = document.createElement("p");
    back.className = "new";
    back.append(Object.assign(document.createElement("a"), {
      href: `${own}?around=${leftAt}&new=${leftAt}#m-${leftAt}`, textContent: "Go to where you left off",
    }));
    log.before(back);
  }
  if (isLatest && (!location.hash || location.hash === "#end")) {
    toEnd();
    if (left) log.querySelector(".new")?.scrollIntoView({ block: "center" });
  }

  // Whoever reads further up is told that something came.
  const below = byId("below");
  below.addEventListener("click", () => {
    if (isLatest) toEnd();
    else location.assign(`${own}#end`);
  });
  const tellBelow = () => { below.hidden = isLatest && isAtEnd(); };
  log.addEventListener("scroll", () => { if (isLatest && isAtEnd()) below.hidden = true; }, { passive: true });

  const put = (content, add) => {
    for (const message of content.querySelectorAll(".msg")) {
      const known = byId(message.id);
      if (known) known.replaceWith(message);
      else add(message);
    }
    byId("nothing")?.remove();
    decorate();
  };
  // A message takes the place that its order in time gives it; the server's page is that order.
  const append = (message) => {
    byId(`sending-${message.dataset.id}`)?.remove();
    const edge = log.querySelector(".edge:has(#newer)");
    log.insertBefore(message, edge ?? [...log.querySelectorAll(".sending")][0] ?? null);
  };

  let isCatchingUp = false;
  let isMissing = false;
  const catchUp = async () => {
    if (!isLatest) return;
    if (isCatchingUp) { isMissing = true; return; }
    isCatchingUp = true;
    const wasAtEnd = isAtEnd();
    const after = newest();
    const answer = await part(`${own}/part${after ? `?after=${after}` : ""}`).catch(() => null);
    if (answer?.ok) {
      put(parsed(await answer.text()), append);
      if (wasAtEnd) toEnd();
      markRead();
    }
    isCatchingUp = false;
    if (isMissing) { isMissing = false; catchUp(); }
  };
  const renewOne = async ({ event }) => {
    const known = event && byId(`m-${event}`);
    if (!known) return;
    const wasAtEnd = isAtEnd();
    const answer = await part(`${here}/m/${event}/part`).catch(() => null);
    if (answer?.ok) {
      put(parsed(await answer.text()), append);
      for (const answered of log.querySelectorAll(`a.re[href="#${known.id}"]`)) quote(answered, byId(known.id));
      if (wasAtEnd) toEnd();
    } else if (answer?.status === 404) known.remove();
  };
  const typists = new Map();
  const tellTyping = () => {
    const now = Date.now();
    for (const [name, until] of typists) if (until < now) typists.delete(name);
    byId("typing").textContent = typists.size ? `${[...typists.keys()].join(", ")} typing…` : "";
  };
  // Something that was applied late may belong before what is shown already.
  const created = async (message) => {
    typists.delete(message.author);
    tellTyping();
    if (message.author !== user) tellBelow();
    const last = newest();
    const lastTime = last && byId(`m-${last}`).querySelector("time").dateTime;
    if (lastTime && message.ts / 1e6 < Date.parse(lastTime)) {
      const answer = await part(`${own}/part`).catch(() => null);
      if (!answer?.ok) return;
      const page = parsed(await answer.text());
      const order = [...page.querySelectorAll(".msg")];
      order.forEach((one, number) => {
        if (byId(one.id)) return;
        const next = order.slice(number + 1).map((later) => byId(later.id)).find(Boolean);
        log.insertBefore(one, next ?? null);
      });
      decorate();
    } else {
      catchUp();
    }
  };

  // Reading on in both directions.
  let isReading = false;
  const readOn = async (older) => {
    const edge = byId(older ? "older" : "newer");
    if (!edge || isReading) return;
    isReading = true;
    const from = older ? `before=${oldest()}` : `after=${newest()}`;
    const answer = await part(`${own}/part?${from}`).catch(() => null);
    if (answer?.ok) {
      const content = parsed(await answer.text());
      const found = content.querySelectorAll(".msg").length;
      const height = log.scrollHeight;
      const holder = edge.closest(".edge");
      if (older) {
        holder.after(content);
        log.scrollTop += log.scrollHeight - height;
      } else {
        holder.before(content);
      }
      if (found < 50) {
        holder.remove();
        if (!older) isLatest = true;
      }
      decorate();
    }
    isReading = false;
  };
  log.addEventListener("scroll", () => {
    if (log.scrollTop < 200) readOn(true);
    if (log.scrollHeight - log.scrollTop - log.clientHeight < 200) readOn(false);
  }, { passive: true });

  // Having read is told when the end was seen.
  let marked = null;
  let marking = null;
  const markRead = () => {
    clearTimeout(marking);
    marking = setTimeout(() => {
      const last = newest();
      if (!last || last === marked || document.hidden || !isLatest || !isAtEnd()) return;
      marked = last;
      part(`/v1/threads/${thread}/read`, {
        method: "PUT", headers: { "content-type": "application/json", "x-space": space },
        body: JSON.stringify({ message: last }),
      }).then((answer) => {
        if (answer.ok) log.dataset.read = last;
        else marked = null;
      }, () => { marked = null; });
    }, 400);
  };
  log.addEventListener("scroll", markRead, { passive: true });
  document.addEventListener("visibilitychange", markRead);

  // Tools beside each message.
  const compose = byId("compose");
  const text = byId("text");
  const answering = byId("answering");
  const refused = byId("refused");
  const tool = (name, label, act) => {
    const button = Object.assign(document.createElement("button"), {
      type: "button", className: "quiet", textContent: name, title: label,
    });
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    return button;
  };
  const react = (event, reaction) => part(`${here}/m/${event}/react`, {
    method: "POST", body: new URLSearchParams({ reaction }),
  });
  const decoded = (path) => {
    try {
      return decodeURIComponent(path);
    } catch {
      return path;
    }
  };
  // A reply says to what, as long as that is on the page.
  const quote = (answered, target) => {
    const words = target.querySelector(".text").innerText.trim().split("\n")[0];
    answered.textContent = `↩ ${target.dataset.author}: ${words.length > 80 ? `${words.slice(0, 80)}…` : words}`;
    answered.href = `#${target.id}`;
  };
  const decorate = () => {
    for (const message of log.querySelectorAll(".msg:not(.ready)")) {
      message.classList.add("ready");
      const event = eventOf(message);
      if (!event) continue;
      const answered = message.querySelector("a.re");
      const named = answered && decoded(answered.pathname);
      const target = answered && [...log.querySelectorAll(".msg")].find((one) =>
        [eventOf(one), one.dataset.id].some((id) => named === `/s/${space}/m/${id}`));
      if (target) quote(answered, target);
      if (compose.hidden) continue;
      const tools = Object.assign(document.createElement("span"), { className: "tools" });
      tools.append(
        tool("👍", "React with thumbs up", () => react(event, "👍")),
        tool("↩", "Answer this message", () => {
          beginAnswer(event);
          text.focus();
        }),
        message.querySelector(".more"));
      message.querySelector("header").append(tools);
    }
  };
  const beginAnswer = (event) => {
    compose.elements.reply_to.value = event;
    answering.hidden = false;
    answering.textContent = `Answering ${byId(`m-${event}`)?.dataset.author ?? "a message"}. `;
    answering.append(tool("Cancel", "Do not answer", endAnswer));
  };
  const endAnswer = () => {
    compose.elements.reply_to.value = "";
    answering.hidden = true;
  };
  decorate();

  // What was typed or not sent yet survives leaving the page, as long as its tab is open.
  const box = `anteroom ${user} ${space} ${thread}`;
  const nothing = { draft: "", answers: "", unsent: [] };
  const kept = () => {
    try {
      const found = JSON.parse(sessionStorage.getItem(box));
      return Array.isArray(found?.unsent) ? { ...nothing, ...found } : nothing;
    } catch {
      return nothing;
    }
  };
  const keep = (change) => {
    const all = { ...kept(), ...change };
    try {
      if (all.draft || all.unsent.length) sessionStorage.setItem(box, JSON.stringify(all));
      else sessionStorage.removeItem(box);
    } catch {
      // There is no room for it, or browsers are told to keep nothing: what is on the page is still there.
    }
  };
  const keepDraft = () => keep({ draft: text.value, answers: compose.elements.reply_to.value });
  const settled = (id) => keep({ unsent: kept().unsent.filter((one) => one.id !== id) });

  // Sending without leaving the page, one after the other. What is not durable yet is shown so.
  let line = Promise.resolve();
  const queued = new Set();
  const failed = new Set();
  const note = ({ pending }) => pending.querySelector(".note");
  const send = (message) => {
    if (queued.has(message)) return;
    queued.add(message);
    failed.delete(message);
    clearTimeout(message.timer);
    message.pending.classList.remove("failed");
    note(message).textContent = "sending…";
    line = line.then(() => sendNow(message)).catch(() => fail(message)).finally(() => queued.delete(message));
  };
  const retry = () => [...failed].forEach(send);
  addEventListener("online", retry);
  const fail = (message, detail, isFinal = false) => {
    // What the stream has shown meanwhile was sent; only its answer was lost.
    if (!message.pending.isConnected) {
      settled(message.id);
      return;
    }
    message.pending.classList.add("failed");
    note(message).textContent = `${detail ?? "It could not be sent"}${isFinal ? ". " : "; it is tried again. "}`;
    note(message).append(
      tool("Try again", "Send it again", () => send(message)),
      tool("Discard", "Do not send it", () => {
        failed.delete(message);
        clearTimeout(message.timer);
        settled(message.id);
        message.pending.remove();
      }));
    if (isFinal) return;
    failed.add(message);
    message.timer = setTimeout(() => { if (failed.has(message)) send(message); }, 10000);
  };
  const sendNow = async (message) => {
    const { id, said, replyTo, pending } = message;
    const form = new URLSearchParams({ id, text: said, reply_to: replyTo, as: user });
    const answer = await part(own, { method: "POST", body: form, signal: AbortSignal.timeout(30000) }).catch(() => null);
    if (answer?.ok) {
      const html = await answer.text();
      const wasAtEnd = isAtEnd();
      settled(id);
      pending.remove();
      put(parsed(html), append);
      if (wasAtEnd) toEnd();
      markRead();
      return;
    }
    const problem = await answer?.json().catch(() => null);
    const isFinal = answer && answer.status < 500 && ![408, 429].includes(answer.status);
    // What would be refused again goes back to where it was typed.
    if (!isFinal || text.value || !pending.isConnected) {
      fail(message, problem?.detail, isFinal);
      return;
    }
    pending.remove();
    text.value = said;
    if (replyTo) beginAnswer(replyTo);
    else endAnswer();
    settled(id);
    keepDraft();
    refused.hidden = false;
    refused.textContent = `It was not sent: ${problem?.detail ?? "the node refused it"}.`;
    if (answer.status === 413) refused.textContent = "It is too long for one message: send it in parts.";
    if (answer.status === 401) {
      refused.textContent = "It was not sent, and is kept here.";
      tellIfOut();
    }
  };
  const show = ({ id, said, replyTo }) => {
    const pending = Object.assign(document.createElement("article"), { className: "msg sending", id: `sending-${id}` });
    const face = Object.assign(document.createElement("span"), { className: "face h11", textContent: "…" });
    const content = Object.assign(document.createElement("div"), { className: "text", textContent: said });
    const head = document.createElement("header");
    head.append(Object.assign(document.createElement("span"), { className: "note", textContent: "sending…" }));
    pending.append(face, head, content);
    byId("nothing")?.remove();
    log.append(pending);
    send({ id, said, replyTo, pending });
  };
  compose.addEventListener("submit", (event) => {
    event.preventDefault();
    const said = text.value;
    if (!said.trim()) return;
    refused.hidden = true;
    const id = `w-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
    const message = { id, said, replyTo: compose.elements.reply_to.value };
    keep({ draft: "", answers: "", unsent: [...kept().unsent, message] });
    show(message);
    toEnd();
    text.value = "";
    endAnswer();
  });
  if (!compose.hidden) {
    const { draft, answers, unsent } = kept();
    text.value ||= draft;
    if (draft && answers) beginAnswer(answers);
    unsent.forEach(show);
  }
  text.addEventListener("input", keepDraft);
  const isKeyboard = matchMedia("(pointer: fine)").matches;
  if (isKeyboard) text.placeholder += " Enter sends, Shift and Enter begin a line.";
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing && (event.ctrlKey || isKeyboard && !event.shiftKey)) {
      event.preventDefault();
      compose.requestSubmit();
    }
  });

  // Typing.
  let toldAt = 0;
  text.addEventListener("input", () => {
    if (Date.now() - toldAt < 3000) return;
    toldAt = Date.now();
    part(`/v1/threads/${thread}/typing`, { method: "POST", headers: { "x-space": space } }).catch(() => {});
  });
  setInterval(tellTyping, 1000);

  listen(`&thread=${encodeURIComponent(thread)}`, {
    "message.created": created,
    "message.changed": renewOne,
    "message.reacted": renewOne,
    "thread.deleted": () => location.assign(here),
    typing: ({ user: who }) => {
      if (who !== user) typists.set(who, Date.now() + 5000);
      tellTyping();
    },
    reset: () => location.reload(),
  }, retry);
  markRead();
})();
