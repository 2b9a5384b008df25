"""A conversation in Python, with nothing but its standard library: post, read page by page, change under a condition.

Usage: python3 examples/talk.py http://localhost:7117 "$(anteroom key create backend | head -n 1)"
"""

import json
import sys
import urllib.error
import urllib.request

URL, KEY = sys.argv[1:]


def ask(method, path, user, body=None, **headers):
    """Sends a request; returns the answer and its ETag."""
    request = urllib.request.Request(URL + path, method=method)
    request.add_header("X-API-Key", KEY)
    request.add_header("X-User-ID", user)
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    data = None
    if body is not None:
        request.add_header("Content-Type", "application/json")
        data = json.dumps(body).encode()
    with urllib.request.urlopen(request, data) as answer:
        text = answer.read()
        return (json.loads(text) if text else None), answer.headers.get("ETag")


thread, _ = ask("POST", "/v1/threads", "alice", {"title": "Coffee"})
path = f"/v1/threads/{thread['id']}/messages"

# Up to 500 messages in one request, with one answer for each.
many = [{"thread": thread["id"], "body": {"text": f"cup {number}"}} for number in range(120)]
answers, _ = ask("POST", "/v1/bulk/messages", "alice", {"messages": many}, Idempotency_Key=f"cups of {thread['id']}")
assert all(answer["status"] == 201 for answer in answers["results"])

# From the latest to the first, page by page.
seen, cursor = [], ""
while cursor is not None:
    page, _ = ask("GET", f"{path}?limit=50&cursor={cursor}", "alice")
    seen = page["messages"] + seen
    cursor = page["next"]
assert [message["body"]["text"] for message in seen] == [f"cup {number}" for number in range(120)]

# Whoever changes a message as they saw it does not overwrite what somebody else wrote meanwhile.
first = f"/v1/messages/{seen[0]['id']}"
message, tag = ask("GET", first, "alice")
ask("PUT", first, "alice", {"body": {"text": "the first cup"}}, If_Match=tag)
try:
    ask("PUT", first, "alice", {"body": {"text": "another first cup"}}, If_Match=tag)
    raise SystemExit("it was overwritten")
except urllib.error.HTTPError as refused:
    problem = json.load(refused)
    print(f"{refused.code}: {problem['title']}")
print(f"{len(seen)} messages, the last written at {seen[-1]['created_at']}")
