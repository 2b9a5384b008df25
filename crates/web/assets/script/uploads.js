// Uploading files that are chosen, dropped or pasted: in parts (tus), with progress, going on where they broke off, also after
// the page was loaded again.

import { STORAGE_PREFIX, byId, createButton, createElement, sendRequest, space, spacePath, thread, threadPath } from "./page.js";

const PART_BYTES = 8 << 20;
const RETRY_MS = [1000, 3000, 10000, 30000];
const UPLOADS = "/v1/uploads";
const VERSION = { "Tus-Resumable": "1.0.0" };

export function enableUploads() {
  const list = byId("uploads");
  if (!list) return;
  const form = byId("upload");
  if (form) form.hidden = false;
  form?.querySelector("input").addEventListener("change", (event) => {
    startAll(list, event.target.files);
    event.target.value = "";
  });
  document.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    startAll(list, event.dataTransfer.files);
  });
  document.addEventListener("paste", (event) => startAll(list, event.clipboardData?.files ?? []));
}

function hasFiles(event) {
  return [...event.dataTransfer?.types ?? []].includes("Files");
}

function startAll(list, files) {
  for (const file of files) new Transfer(list, file).start();
}

// One file on its way.
class Transfer {
  constructor(list, file) {
    this.file = file;
    this.attempt = 0;
    this.aborted = false;
    // The same file goes on where it was, if the page was left meanwhile.
    this.name = `${STORAGE_PREFIX}upload ${space} ${file.name} ${file.size} ${file.lastModified}`;
    this.place = sessionStorage.getItem(this.name);
    this.item = createElement("li", { className: "upload" });
    this.progress = createElement("progress", { max: file.size || 1, value: 0 });
    this.progress.setAttribute("aria-label", `Upload of ${file.name}`);
    this.status = createElement("span", { className: "note", role: "status" });
    this.tools = createElement("span");
    this.item.append(createElement("span", { textContent: file.name }), this.progress, this.status, this.tools);
    list.append(this.item);
  }

  start() {
    this.tools.replaceChildren(createButton("Cancel", `Cancel the upload of ${this.file.name}`, () => this.cancel()));
    this.run().catch(() => this.fail("something went wrong", true));
  }

  async run() {
    let offset = this.place ? await this.askOffset() : null;
    if (offset === null) {
      offset = 0;
      if (!await this.begin()) return;
    }
    while (!this.aborted && offset < this.file.size) {
      this.show(offset);
      const body = this.file.slice(offset, offset + PART_BYTES);
      const headers = { ...VERSION, "Upload-Offset": offset, "Content-Type": "application/offset+octet-stream" };
      const answer = await sendRequest(this.place, { method: "PATCH", headers, body });
      if (answer?.status === 204) {
        offset = Number(answer.headers.get("Upload-Offset"));
        this.attempt = 0;
        continue;
      }
      if (answer && answer.status < 500 && ![408, 409, 429].includes(answer.status)) return this.refuse(answer);
      if (this.attempt >= RETRY_MS.length) return this.fail("the node did not answer", true);
      this.status.textContent = "Waiting for the connection…";
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS[this.attempt++]));
      offset = await this.askOffset() ?? offset;
    }
    if (!this.aborted) await this.finish();
  }

  async begin() {
    const encode = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
    const metadata = `filename ${encode(this.file.name)},filetype ${encode(this.file.type)}`;
    const headers = { ...VERSION, "Upload-Length": this.file.size, "Upload-Metadata": metadata };
    const answer = await sendRequest(UPLOADS, { method: "POST", headers });
    if (!answer?.ok) {
      if (answer) await this.refuse(answer);
      else this.fail("the node did not answer", true);
      return false;
    }
    this.place = answer.headers.get("Location");
    sessionStorage.setItem(this.name, this.place);
    return true;
  }

  // How far the node has it; null if it does not know of it any more.
  async askOffset() {
    const answer = await sendRequest(this.place, { method: "HEAD", headers: VERSION });
    return answer?.ok ? Number(answer.headers.get("Upload-Offset")) : null;
  }

  show(offset) {
    this.progress.value = offset;
    this.status.textContent = ` ${Math.floor(100 * offset / (this.file.size || 1))} %`;
  }

  async finish() {
    this.show(this.file.size);
    sessionStorage.removeItem(this.name);
    const file = this.place.split("/").pop();
    this.tools.replaceChildren();
    if (!thread) {
      this.status.replaceChildren(createElement("a", { href: `${spacePath}/files/${file}`, textContent: "Uploaded" }));
      return;
    }
    const answer = await sendRequest(`${threadPath}/attached`, { method: "POST", body: new URLSearchParams({ file }) });
    if (answer?.ok) this.item.remove();
    else this.fail("it is uploaded, but the message was not sent", true);
  }

  async refuse(answer) {
    const detail = (await answer.json().catch(() => null))?.detail;
    this.fail(detail ?? `the node answered with status ${answer.status}`, false);
  }

  fail(why, canRetry) {
    this.status.textContent = ` Not uploaded: ${why}. `;
    const again = createButton("Try again", `Try again to upload ${this.file.name}`, () => { this.attempt = 0; this.start(); });
    this.tools.replaceChildren(...canRetry ? [again] : [], createButton("Discard", "Discard", () => this.cancel()));
  }

  async cancel() {
    this.aborted = true;
    sessionStorage.removeItem(this.name);
    this.item.remove();
    if (this.place) await sendRequest(this.place, { method: "DELETE", headers: VERSION });
  }
}
