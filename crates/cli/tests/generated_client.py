"""A story of twenty calls through the client that openapi-python-client makes of the node's OpenAPI document.

Usage: generated_client.py FOLDER_OF_THE_CLIENT URL ADMIN_KEY
"""

import sys

folder, url, key = sys.argv[1:]
sys.path.insert(0, folder)

from anteroom_client import AuthenticatedClient  # noqa: E402
from anteroom_client.api.admin import get_admin_audit, get_admin_jobs, get_admin_stats, get_admin_users, post_admin_jobs  # noqa: E402
from anteroom_client.api.health import get_readyz  # noqa: E402
from anteroom_client.api.messages import (  # noqa: E402
    delete_messages_id,
    get_messages_id,
    get_messages_id_replies,
    get_messages_id_versions,
    get_threads_thread_messages,
    post_messages,
    post_threads_thread_messages,
    put_messages_id,
)
from anteroom_client.api.people import get_blocks, get_mentions, put_blocks_user  # noqa: E402
from anteroom_client.api.reactions import get_messages_id_reactions, post_messages_id_reactions  # noqa: E402
from anteroom_client.api.threads import get_threads, get_threads_thread, post_threads, put_threads_thread  # noqa: E402
from anteroom_client.models import (  # noqa: E402
    BlockBody,
    BlockWord,
    EditBody,
    MessageBody,
    Problem,
    ReactionBody,
    ThreadBody,
    WorkBody,
    WorkWord,
)

client = AuthenticatedClient(base_url=url, token=key, auth_header_name="X-API-Key", prefix="")
calls = 0


def call(operation, *arguments, status=200, user="alice", **named):
    """Calls an operation, and checks that it is answered as the document says."""
    global calls
    calls += 1
    if user:
        named["x_user_id"] = user
    response = operation.sync_detailed(*arguments, client=client, **named)
    assert response.status_code == status, (operation.__name__, response.status_code, response.content)
    return response.parsed


call(get_readyz, user=None)
thread = call(post_threads, body=ThreadBody(title="Tea"), status=201)
assert call(get_threads_thread, thread.id).title == "Tea"
assert call(put_threads_thread, thread.id, body=ThreadBody(title="Green tea")).title == "Green tea"

first = call(post_threads_thread_messages, thread.id, body=MessageBody(body="Who wants some?", mentions=["bob"]), status=201)
again = {"body": MessageBody(body="I do", thread=thread.id, reply_to=first.id), "idempotency_key": f"once in {thread.id}", "user": "bob"}
answer = call(post_messages, status=201, **again)
assert call(post_messages, **again).id == answer.id, "a repeated request does nothing again"

assert call(put_messages_id, first.id, body=EditBody(body="Who wants some tea?")).version == 2
assert call(get_messages_id, first.id).body == "Who wants some tea?"
assert [version.body for version in call(get_messages_id_versions, first.id).versions][0] == "Who wants some?"
assert [reply.id for reply in call(get_messages_id_replies, first.id).messages] == [answer.id]
assert [message.id for message in call(get_threads_thread_messages, thread.id, limit=10).messages] == [first.id, answer.id]

call(post_messages_id_reactions, first.id, body=ReactionBody(reaction="+1"), user="bob")
assert [(one.id, one.reaction) for one in call(get_messages_id_reactions, first.id).reactions] == [("bob", "+1")]
assert call(get_mentions, user="bob").messages[0].id == first.id
call(put_blocks_user, "bob", body=BlockBody(kind=BlockWord.MUTE), status=204)
assert len(call(get_blocks).blocks) == 1

call(delete_messages_id, answer.id, user="bob", status=204)
assert call(get_messages_id, answer.id).deleted
assert thread.id in [other.id for other in call(get_threads).threads]
assert isinstance(call(get_messages_id, "nothing", status=404), Problem)

assert call(get_admin_stats, user=None) is not None
assert {"alice", "bob"} <= {user.id for user in call(get_admin_users, user=None).users}
job = call(post_admin_jobs, body=WorkBody(work=WorkWord.RETAIN), status=202, user=None).job
assert job in [other.number for other in call(get_admin_jobs, user=None).jobs]
assert call(get_admin_audit, user=None).entries
print(f"{calls} calls")
