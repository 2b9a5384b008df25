"""Everything that the client `progressdb` 0.1.5 can ask, asked of a node."""

import sys

from progressdb import ProgressDBClient
from progressdb.client import ApiError

url, key = sys.argv[1:]
client = ProgressDBClient(url, key)


def refused(status, ask):
    try:
        ask()
    except ApiError as error:
        assert error.status == status, error
        assert error.body["type"].startswith("/problems/"), error.body
    else:
        raise AssertionError(f"it was not refused with {status}")


signed = client.sign_user("alice")
assert signed["userId"] == "alice" and len(signed["signature"]) == 64, signed
assert client.admin_health()["status"] == "ok"
assert client.admin_stats()["threads"] == 1, "the welcome"
before = client.admin_stats()["messages"]

thread = client.create_thread({"title": "Room 1", "metadata": {"a": 1}}, "alice")
assert (thread["title"], thread["author"], thread["metadata"]) == ("Room 1", "alice", {"a": 1}), thread
assert [found["id"] for found in client.list_threads("alice", title="Room")["threads"]] == [thread["id"]]
assert client.list_threads("alice", slug="nothing")["threads"] == []
assert client.update_thread(thread["id"], {"title": "Room 2"}, "alice")["title"] == "Room 2"
assert client.get_thread(thread["id"], "bob")["title"] == "Room 2"

message = client.create_message({"thread": thread["id"], "body": {"text": "hi"}}, "alice")
assert (message["thread"], message["author"], message["body"]) == (thread["id"], "alice", {"text": "hi"}), message
chosen = client.create_message({"id": "msg-1", "thread": "new-thread", "body": "text"}, "bob")
assert (chosen["id"], chosen["thread"]) == ("msg-1", "new-thread"), chosen
assert client.admin_stats()["messages"] == before + 2
assert [found["id"] for found in client.list_messages(limit=2)["messages"]] == [message["id"], "msg-1"], "of all threads"
assert message["role"] == "user"
spoken = client.create_message({"thread": "roles", "body": "hi", "role": "assistant"}, "alice")
assert client.get_message(spoken["id"], "bob")["role"] == "assistant"
listed = client.list_messages(thread["id"], 10)
assert listed["thread"] == thread["id"] and [found["id"] for found in listed["messages"]] == [message["id"]]
assert client.get_message("msg-1", "alice")["body"] == "text"
assert client.update_message(message["id"], {"body": {"text": "hello"}}, "alice")["body"] == {"text": "hello"}
refused(403, lambda: client.update_message(message["id"], {"body": 1}, "bob"))
assert client.delete_message(message["id"], "alice") is None
assert client.list_messages(thread["id"])["messages"] == []
assert client.delete_thread(thread["id"], "alice") is None
refused(404, lambda: client.get_thread(thread["id"], "alice"))
refused(401, lambda: ProgressDBClient(url, "nonsense").admin_health())
print("all good")
