//! Sources and pull requests that are wrong, too large or somebody else's bring nothing and stop nobody.

use crate::common::Home;
use crate::common::git_server::{GitServer, Manner};
use crate::common::git_work::{Work, noise};
use crate::common::nostr_client::{Author, NostrClient};
use crate::common::served::Served;
use crate::{announcement, pull_request, refs_of, start, start_with};
use model::nostr::NostrEvent;
use serde_json::json;

#[test]
fn gits_old_protocol_brings_nothing() {
    let (served, owner, work) = (start(), Author::new(1), Work::new());
    let (mut client, source) = (NostrClient::connect(&served.url), GitServer::start("127.0.0.2"));
    let commit = work.commit("one");
    source.take(work.path(), &commit, "refs/heads/main");
    source.behave(Manner::Dumb);
    client.publish_well(&announcement(&owner, &served.url, &[source.url()], &[]));
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    client.publish_well(&state);
    let explained = || served.home.json(&["explain", &state.id.to_string()]).to_string();
    client.wait_until(|| explained().contains("dumb http transport"));
    assert_eq!(client.stored(&json!({ "kinds": [30618] })), [""; 0]);
}

#[test]
fn a_strangers_pull_request_does_not_stop_a_repository() {
    let (served, owner, stranger, work) = (start(), Author::new(1), Author::new(2), Work::new());
    let (mut client, source) = (NostrClient::connect(&served.url), GitServer::start("127.0.0.2"));
    let commit = work.commit("one");
    let change = work.commit("a change");
    work.git(&["tag", "--annotate", "--message", "v1", "v1", &commit]);
    let tag = work.git(&["rev-parse", "v1"]);
    source.take(work.path(), &commit, "refs/heads/main");
    source.take(work.path(), "v1", "refs/tags/v1");
    source.take(work.path(), &change, "refs/heads/change");
    client.publish_well(&announcement(&owner, &served.url, &[source.url()], &[]));
    // One that is no commit, some that nobody has, and a good one; then the state.
    for nonsense in [tag.as_str(), &"0a".repeat(20), &"0b".repeat(20)] {
        client.publish_well(&pull_request(&stranger, &owner, nonsense));
    }
    let good = pull_request(&stranger, &owner, &change);
    client.publish_well(&good);
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    client.publish_well(&state);
    client.wait_for_events(&json!({ "kinds": [30618, 1618] }), &[&state, &good]);
    client.wait_until(|| refs_of(&served, &owner).contains(&format!("refs/nostr/{}", good.id)));
    assert!(!refs_of(&served, &owner).contains(&tag));
}

#[test]
fn pull_requests_are_fetched_together_and_a_bad_one_stops_no_other() {
    let (served, owner, stranger, work) =
        (start_with("127.0.0.0/8", "sync.default_delay_secs=600"), Author::new(1), Author::new(2), Work::new());
    let (mut client, source) = (NostrClient::connect(&served.url), GitServer::start("127.0.0.2"));
    let commit = work.commit("one");
    client.publish_well(&announcement(&owner, &served.url, &[source.url()], &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    work.git(&["push", &format!("{}/{}/tool.git", served.url, owner.npub()), "main"]);
    let name = format!("{}/tool", owner.npub());
    let mut pull_requests = Vec::new();
    for number in 0..40 {
        let change = work.commit(&number.to_string());
        source.take(work.path(), &change, &format!("refs/heads/change-{number}"));
        pull_requests.push(pull_request(&stranger, &owner, &change));
    }
    pull_requests.iter().for_each(|event| drop(client.publish_well(event)));
    let refs = |events: &[NostrEvent]| {
        let refs = refs_of(&served, &owner);
        events.iter().all(|event| refs.contains(&format!("refs/nostr/{}", event.id)))
    };
    assert_eq!(source.requests(), 0);
    served.home.run(&["repos", "sync", &name]);
    client.wait_until(|| refs(&pull_requests));
    // What refs it has, then what git asks for once.
    let together = source.requests();
    assert!(together <= 6, "{together} requests for 40 pull requests");
    // One that is no commit among others that are.
    work.git(&["tag", "--annotate", "--message", "v1", "v1", &commit]);
    let tag = work.git(&["rev-parse", "v1"]);
    source.take(work.path(), "v1", "refs/tags/v1");
    let mut later = vec![pull_request(&stranger, &owner, &tag)];
    for number in 40..56 {
        let change = work.commit(&number.to_string());
        source.take(work.path(), &change, &format!("refs/heads/change-{number}"));
        later.push(pull_request(&stranger, &owner, &change));
    }
    later.iter().for_each(|event| drop(client.publish_well(event)));
    served.home.run(&["repos", "sync", &name]);
    client.wait_until(|| refs(&later[1..]));
    assert!(!refs_of(&served, &owner).contains(&tag));
}

#[test]
fn owners_of_one_identifier_get_nothing_from_each_others_sources() {
    let (served, work) = (start(), Work::new());
    let (owner, stranger) = (Author::new(1), Author::new(2));
    let mut client = NostrClient::connect(&served.url);
    let (source, empty) = (GitServer::start("127.0.0.2"), GitServer::start("127.0.0.3"));
    let commit = work.commit("one");
    source.take(work.path(), &commit, "refs/heads/main");
    client.publish_well(&announcement(&stranger, &served.url, &[empty.url()], &[]));
    client.publish_well(&announcement(&owner, &served.url, &[source.url()], &[]));
    // Both want the same commit.
    client.publish_well(&stranger.state("tool", &[("refs/heads/main", &commit)]));
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    client.publish_well(&state);
    client.wait_for_events(&json!({ "kinds": [30618] }), &[&state]);
    // The next hunt begins when that one has ended.
    let (before, name) = (empty.requests(), format!("{}/tool", stranger.npub()));
    assert_eq!(served.home.run(&["repos", "sync", &name]).code, 0);
    client.wait_until(|| empty.requests() > before);
    assert_eq!(client.stored(&json!({ "kinds": [30618], "authors": [stranger.key()] })), [""; 0]);
    assert_eq!(refs_of(&served, &stranger), "");
    // The list tells them apart.
    let listed = served.home.json(&["repos", "list"])["repositories"].clone();
    let waits = |author: &Author| {
        let row = listed.as_array().unwrap().iter().find(|row| row["owner"] == author.npub().as_str()).unwrap();
        (row["has_data"].as_bool().unwrap(), row["missing"].as_u64().unwrap() > 0)
    };
    assert_eq!((waits(&owner), waits(&stranger)), ((true, false), (false, true)), "{listed}");
}

#[test]
fn what_is_fetched_has_the_limits_of_a_push() {
    for (limits, is_large, why) in [
        (["git.push_objects_max=4", "git.object_mib_max=1"], false, "the pack has 6 objects; at most 4 are taken"),
        (["git.push_objects_max=100", "git.object_mib_max=1"], true, "over limit"),
    ] {
        let words = ["git.enabled=1", "sync.default_delay_secs=0", limits[0], limits[1]].map(|word| ["--set", word]);
        let networks = [("ANTEROOM_SYNC_PRIVATE_NETWORKS", "127.0.0.0/8")];
        let served = Served::start_with(Home::ready(), words.as_flattened(), &networks);
        let (owner, work, source) = (Author::new(1), Work::new(), GitServer::start("127.0.0.2"));
        if is_large {
            std::fs::write(work.path().join("noise"), noise(2 << 20)).unwrap();
            work.git(&["add", "noise"]);
        } else {
            work.commit("one");
        }
        let (mut client, commit) = (NostrClient::connect(&served.url), work.commit("two"));
        source.take(work.path(), &commit, "refs/heads/main");
        client.publish_well(&announcement(&owner, &served.url, &[source.url()], &[]));
        let state = owner.state("tool", &[("refs/heads/main", &commit)]);
        client.publish_well(&state);
        let explained = || served.home.json(&["explain", &state.id.to_string()]).to_string();
        client.wait_until(|| explained().contains(why));
        assert_eq!(client.stored(&json!({ "kinds": [30618] })), [""; 0]);
    }
}

#[test]
fn a_redirect_to_another_host_is_not_followed_and_said() {
    let (served, owner, work) = (start(), Author::new(1), Work::new());
    let (source, other) = (GitServer::start("127.0.0.2"), GitServer::start("127.0.0.3"));
    let (mut client, commit) = (NostrClient::connect(&served.url), work.commit("one"));
    other.take(work.path(), &commit, "refs/heads/main");
    source.behave(Manner::Redirects(format!("http://{}", other.address)));
    client.publish_well(&announcement(&owner, &served.url, &[source.url()], &[]));
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    client.publish_well(&state);
    let explained = || served.home.json(&["explain", &state.id.to_string()]).to_string();
    client.wait_until(|| explained().contains("it redirects to another host, 127.0.0.3"));
    assert_eq!(other.requests(), 0);
}

#[test]
fn nobody_leads_the_node_into_the_network_around_it() {
    // Only this one address is allowed.
    let (served, owner, work) = (start_with("127.0.0.2/32", "sync.default_delay_secs=0"), Author::new(1), Work::new());
    let mut client = NostrClient::connect(&served.url);
    let (source, inside) = (GitServer::start("127.0.0.2"), GitServer::start("127.0.0.3"));
    let commit = work.commit("one");
    inside.take(work.path(), &commit, "refs/heads/main");
    source.behave(Manner::Redirects(format!("http://{}", inside.address)));
    let urls = [
        source.url(),
        inside.url(),
        format!("http://localhost:{}/repository", inside.address.port()),
        "file:///etc".to_owned(),
        "ssh://127.0.0.2/repository".to_owned(),
        "ext::sh -c id".to_owned(),
        "--upload-pack=id".to_owned(),
    ];
    let announced = announcement(&owner, &served.url, &urls, &[]);
    client.publish_well(&announced);
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    client.publish_well(&state);
    source.wait_until_asked();
    // What it was told is explained, and nothing came.
    let explained = || served.home.json(&["explain", &state.id.to_string()]).to_string();
    client.wait_until(|| explained().contains("not public"));
    assert_eq!(inside.requests(), 0);
    assert_eq!(client.stored(&json!({ "kinds": [30618] })), [""; 0]);
    // It behaves, and somebody asks for another try.
    source.behave(Manner::Honest);
    source.take(work.path(), &commit, "refs/heads/main");
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    client.wait_until(|| !refs_of(&served, &owner).is_empty());
}
