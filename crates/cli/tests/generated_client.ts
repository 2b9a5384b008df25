// A story of twenty calls through a client with the types that openapi-typescript makes of the node's OpenAPI document.
// Usage: node generated_client.js URL ADMIN_KEY

import createClient from "openapi-fetch";
import type { paths } from "./api";

declare const process: { argv: string[] };
const [url, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { "X-API-Key": key } });
const alice = { "X-User-ID": "alice" };
const bob = { "X-User-ID": "bob" };
let calls = 0;

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/// What an operation answered, which must have succeeded.
async function ok<T>(called: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  calls += 1;
  const { data, error, response } = await called;
  check(response.ok, `${response.url} answered ${response.status}: ${JSON.stringify(error)}`);
  return data as T;
}

await ok(client.GET("/readyz"));
const made = await ok(client.POST("/v1/threads", { params: { header: alice }, body: { title: "Tea" } }));
const thread = { thread: made.id };
check((await ok(client.GET("/v1/threads/{thread}", { params: { path: thread, header: alice } }))).title === "Tea", "its title");
const renamed = client.PUT("/v1/threads/{thread}", { params: { path: thread, header: alice }, body: { title: "Green tea" } });
check((await ok(renamed)).title === "Green tea", "its new title");

const first = await ok(
  client.POST("/v1/threads/{thread}/messages", {
    params: { path: thread, header: alice },
    body: { body: "Who wants some?", mentions: ["bob"] },
  }),
);
const answering = {
  params: { header: { ...bob, "Idempotency-Key": `once in ${made.id}` } },
  body: { body: "I do", thread: made.id, reply_to: first.id },
};
const answer = await ok(client.POST("/v1/messages", answering));
check((await ok(client.POST("/v1/messages", answering))).id === answer.id, "a repeated request does nothing again");

const message = { path: { id: first.id }, header: alice };
const edited = await ok(client.PUT("/v1/messages/{id}", { params: message, body: { body: "Who wants some tea?" } }));
check(edited.version === 2, "its second version");
check((await ok(client.GET("/v1/messages/{id}", { params: message }))).body === "Who wants some tea?", "what it says");
const { versions } = await ok(client.GET("/v1/messages/{id}/versions", { params: message }));
check(versions[0].body === "Who wants some?", "what it said first");
const replies = await ok(client.GET("/v1/messages/{id}/replies", { params: message }));
check(replies.messages.length === 1 && replies.messages[0].id === answer.id, "its reply");
const page = client.GET("/v1/threads/{thread}/messages", { params: { path: thread, header: alice, query: { limit: 10 } } });
check((await ok(page)).messages.map((found) => found.id).join() === [first.id, answer.id].join(), "both messages");

const byBob = { path: { id: first.id }, header: bob };
await ok(client.POST("/v1/messages/{id}/reactions", { params: byBob, body: { reaction: "+1" } }));
const { reactions } = await ok(client.GET("/v1/messages/{id}/reactions", { params: message }));
check(reactions[0]?.id === "bob" && reactions[0].reaction === "+1", "the reaction");
const { messages: mentions } = await ok(client.GET("/v1/mentions", { params: { header: bob } }));
check(mentions[0].id === first.id, "the mention");
await ok(client.PUT("/v1/blocks/{user}", { params: { path: { user: "bob" }, header: alice }, body: { kind: "mute" } }));
check((await ok(client.GET("/v1/blocks", { params: { header: alice } }))).blocks.length === 1, "the mute");

await ok(client.DELETE("/v1/messages/{id}", { params: { path: { id: answer.id }, header: bob } }));
const gone = await ok(client.GET("/v1/messages/{id}", { params: { path: { id: answer.id }, header: alice } }));
check(gone.deleted, "the deletion");
const { threads } = await ok(client.GET("/v1/threads", { params: { header: alice } }));
check(threads.some((other) => other.id === made.id), "the thread in the list");
const { error } = await client.GET("/v1/messages/{id}", { params: { path: { id: "nothing" }, header: alice } });
check(error !== undefined && error.status === 404, "a problem");

const { users } = await ok(client.GET("/admin/users"));
check(users.some((user) => user.id === "bob"), "the users");
const { job } = await ok(client.POST("/admin/jobs", { body: { work: "retain" } }));
check((await ok(client.GET("/admin/jobs"))).jobs.some((other) => other.number === job), "the job");
console.log(`${calls} calls`);
