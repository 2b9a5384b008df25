"""Everything that the client `progressdb` 0.2.0 can ask, asked of a node."""

import sys

url, key, package = sys.argv[1:]
sys.path.insert(0, package)

from progressdb import ProgressDBClient
from progressdb.errors import ApiError

client = ProgressDBClient({"baseUrl": url, "apiKey": key})


def refused(status, ask):
    try:
        ask()
    except ApiError as error:
        assert error.status_code == status, error
    else:
        raise AssertionError(f"it was not refused with {status}")


assert client.healthz()["status"] == "ok"
assert client.readyz()["status"] == "ok"
signed = client.sign_user("alice")
assert signed["userId"] == "alice" and len(signed["signature"]) == 64, signed

thread = client.create_thread({"title": "Room 1"}, "alice")
assert (thread["title"], thread["author"], thread["key"]) == ("Room 1", "alice", thread["id"]), thread
room = thread["key"]
assert isinstance(thread["created_ts"], int) and isinstance(thread["updated_ts"], int)
assert client.update_thread(room, {"title": "Room 2"}, "alice")["title"] == "Room 2"
assert client.get_thread(room, "bob")["slug"] == "room-1"
others = [client.create_thread({"title": f"Other {number}"}, "alice")["key"] for number in range(3)]
page = client.list_threads({"limit": 2}, "alice")
assert [found["key"] for found in page["data"]] == [others[2], others[1]], page
assert page["pagination"]["has_more"] is True
older = client.list_threads({"limit": 2, "after": page["pagination"]["next_cursor"]}, "alice")
assert [found["key"] for found in older["data"]] == [others[0], room], older
newer = client.list_threads({"limit": 2, "before": room, "sort_by": "created_ts"}, "alice")
assert [found["key"] for found in newer["data"]] == [others[1], others[0]], newer
assert len(client.list_threads()["data"]) == 5, "with the welcome"

sent = [client.create_thread_message(room, {"body": {"text": f"{number}"}}, "alice") for number in range(4)]
assert [(one["thread"], one["author"], one["role"]) for one in sent] == [(room, "alice", "user")] * 4, sent
page = client.list_thread_messages(room, {"limit": 3}, "bob")
assert [found["key"] for found in page["data"]] == [one["key"] for one in sent[1:]], page
assert page["pagination"]["has_more"] is True
older = client.list_thread_messages(room, {"limit": 3, "before": page["pagination"]["next_cursor"]}, "bob")
assert [found["key"] for found in older["data"]] == [sent[0]["key"]] and not older["pagination"]["has_more"], older
around = client.list_thread_messages(room, {"limit": 3, "anchor": sent[2]["key"]}, "bob")
assert [found["key"] for found in around["data"]] == [one["key"] for one in sent[1:]], around
assert len(client.list_thread_messages(room)["data"]) == 4
first = sent[0]["key"]
assert client.get_thread_message(room, first, "bob")["body"] == {"text": "0"}
assert client.update_thread_message(room, first, {"body": "new"}, "alice")["body"] == "new"
refused(403, lambda: client.update_thread_message(room, first, {"body": 1}, "bob"))
assert client.delete_thread_message(room, first, "alice") == {"deleted": True}
assert len(client.list_thread_messages(room, {}, "alice")["data"]) == 3
assert client.delete_thread(room, "alice") == {"deleted": True}
refused(404, lambda: client.get_thread(room, "alice"))
refused(401, lambda: ProgressDBClient({"baseUrl": url, "apiKey": "nonsense"}).list_threads())
print("all good")
