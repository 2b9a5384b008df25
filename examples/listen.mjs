// Listens to what happens in a thread, in JavaScript: a live stream that resumes where it was cut off.
//
// Usage: node examples/listen.mjs http://localhost:7117 "$(anteroom key create backend | head -n 1)"

const [url, key] = process.argv.slice(2);
const headers = { "X-API-Key": key, "X-User-ID": "alice", "Content-Type": "application/json" };

async function post(text) {
  const body = JSON.stringify({ body: { text } });
  const answer = await fetch(`${url}/v1/threads/radio/messages`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(`${answer.status}: ${(await answer.json()).detail}`);
  return answer.json();
}

// Reads events until `wanted` of them came, and returns the position after which to go on.
async function listen(wanted, lastEventId, onOpen) {
  const resume = lastEventId ? { "Last-Event-ID": lastEventId } : {};
  const stop = new AbortController();
  const answer = await fetch(`${url}/v1/events?thread=radio`, { headers: { ...headers, ...resume }, signal: stop.signal });
  await onOpen?.();
  let [buffer, position, heard] = ["", lastEventId, 0];
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    buffer += chunk;
    const events = buffer.split("\n\n");
    buffer = events.pop();
    for (const event of events) {
      const fields = Object.fromEntries(event.split("\n").map((line) => [line.split(": ", 1)[0], line.slice(line.indexOf(": ") + 2)]));
      if (!fields.event) continue; // a quiet stream says that it is still there
      position = fields.id ?? position;
      if (fields.event === "message.created") {
        const message = JSON.parse(fields.data);
        console.log(`${message.author} at ${new Date(message.created_at).toISOString()}: ${message.body.text}`);
        heard += 1;
      }
      if (heard === wanted) {
        stop.abort();
        return position;
      }
    }
  }
}

await post("before anybody listens");
const position = await listen(1, undefined, () => post("one"));
await post("two"); // while nobody listens
await post("three");
await listen(2, position);
