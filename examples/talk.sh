#!/bin/sh
# A conversation with curl: a thread, messages, an edit, a reaction, and what came of it.
# Usage: URL=http://localhost:7117 KEY=$(anteroom key create backend | head -n 1) sh examples/talk.sh
set -eu

ask() {
    method=$1 path=$2 user=$3
    shift 3
    curl --silent --show-error --fail-with-body --request "$method" "$URL$path" \
        --header "X-API-Key: $KEY" --header "X-User-ID: $user" "$@"
    echo
}

ask POST /v1/threads alice --json '{"id": "tea", "title": "Tea"}'
# With an id of its own a message is posted once, however often this is sent.
ask POST /v1/threads/tea/messages alice --json '{"id": "tea-1", "body": {"text": "Who wants some?"}}'
ask POST /v1/threads/tea/messages bob --json '{"body": {"text": "I do"}, "reply_to": "tea-1"}'
ask PUT /v1/messages/tea-1 alice --json '{"body": {"text": "Who wants some tea?"}}'
ask POST /v1/messages/tea-1/reactions bob --json '{"reaction": "👍"}'
ask GET '/v1/threads/tea/messages?limit=10' alice
