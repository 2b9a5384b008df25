//! Git over Nostr through the real binary, with plain `git` and a small Nostr client: announce, push, clone, refused
//! pushes, co-maintainers, pull requests, and kills in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::git_work::{Work, clone, noise, object_stores, push_raw, run_git};
use common::nostr_client::{Author, NostrClient};
use common::served::Served;
use serde_json::json;

const WAITS: &str = "purgatory: won't be served until git data arrives";

fn start(home: Home) -> Served {
    Served::start(home, &["--set", "git.enabled=1"])
}

#[test]
fn a_repository_is_announced_pushed_and_cloned() {
    let served = start(Home::ready());
    let (owner, mut client, work) = (Author::new(1), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let commit = work.commit("one");
    // Nothing is hosted before it is announced, and nothing is pushed before a state says so.
    assert!(work.run(&["push", &url, "main"]).1.contains("not found"));
    let announcement = owner.announcement(&served.url, "tool", &[]);
    assert_eq!(client.publish_well(&announcement), WAITS);
    assert_eq!(client.stored(&json!({ "kinds": [30617] })), [""; 0]);
    let (is_pushed, said) = work.run(&["push", &url, "main"]);
    assert!(!is_pushed && said.contains("publish a repository state"), "{said}");
    let state = owner.state("tool", &[("refs/heads/main", &commit)]);
    assert_eq!(client.publish_well(&state), WAITS);
    // Somebody hears of both as soon as the data is here.
    let mut listener = NostrClient::connect(&served.url);
    listener.say(&json!(["REQ", "live", { "authors": [owner.key()] }]));
    assert_eq!(listener.hear(), json!(["EOSE", "live"]));
    work.git(&["push", &url, "main"]);
    let heard: Vec<_> = (0..2).map(|_| listener.hear()[2]["id"].as_str().unwrap().to_owned()).collect();
    assert!(heard.contains(&announcement.id.to_string()) && heard.contains(&state.id.to_string()), "{heard:?}");
    assert_eq!(client.stored(&json!({ "kinds": [30618] })), [state.id.to_string()]);
    for options in [&[][..], &["--depth=1"], &["--filter=blob:none"], &["-c", "protocol.version=0"]] {
        let (_folder, copy) = clone(&url, options);
        assert_eq!(std::fs::read_to_string(copy.join("file")).unwrap(), "one", "{options:?}");
        assert_eq!(run_git(&copy, &["rev-parse", "HEAD"]).1.trim(), commit);
    }
    assert_eq!(client.publish(&announcement), (true, "duplicate: already have this event".into()));
}

#[test]
fn only_what_the_newest_state_says_is_pushed() {
    let served = start(Home::ready());
    let (owner, mut client, work) = (Author::new(2), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let first = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &first)]));
    work.git(&["push", &url, "main"]);
    // Another commit, another branch, a tag, a deletion: none of them is in the state.
    let second = work.commit("two");
    for (refs, why) in [
        ("main:main", format!("the newest repository state says {first}")),
        ("main:other", "the newest repository state does not have this ref".to_owned()),
        ("main:refs/tags/v1", "the newest repository state does not have this ref".to_owned()),
        (":main", "the newest repository state still has this ref".to_owned()),
        ("main:refs/evil/x", "the newest repository state does not have this ref".to_owned()),
    ] {
        let (is_pushed, said) = work.run(&["push", &url, refs]);
        assert!(!is_pushed && said.contains(&why), "{refs}: {said}");
    }
    // Nothing of a refused push is left.
    let (_folder, copy) = clone(&url, &[]);
    let (is_there, _) = run_git(&copy, &["fetch", "--quiet", &url, &second]);
    assert!(!is_there, "an object of a refused push can be fetched");
    // With a new state it is taken; a ref that the state has no more goes by itself.
    let both = [("refs/heads/main", second.as_str()), ("refs/tags/v1", first.as_str())];
    client.publish_well(&owner.state("tool", &both));
    work.git(&["tag", "v1", &first]);
    work.git(&["push", &url, "main", "v1"]);
    let refs = work.git(&["ls-remote", &url]);
    assert!(refs.contains(&format!("{first}\trefs/tags/v1")) && refs.contains(&format!("{second}\trefs/heads/main")));
    assert_eq!(client.publish_well(&owner.state("tool", &[("refs/heads/main", &first)])), "");
    let mut refs = work.git(&["ls-remote", &url]);
    while refs.contains("v1") || refs.contains(&second) {
        refs = work.git(&["ls-remote", &url]);
    }
    assert!(refs.contains(&format!("{first}\trefs/heads/main")), "{refs}");
}

#[test]
fn what_was_answered_survives_a_kill_at_every_step() {
    let mut served = start(Home::ready());
    let port = served.url.rsplit(':').next().unwrap().to_owned();
    let listen = format!("127.0.0.1:{port}");
    let (owner, work) = (Author::new(3), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let commit = work.commit("one");
    let (announcement, state) =
        (owner.announcement(&served.url, "tool", &[]), owner.state("tool", &[("refs/heads/main", &commit)]));
    let restart = |served: Served| Served::start(served.kill(), &["--set", "git.enabled=1", "--listen", &listen]);
    NostrClient::connect(&served.url).publish_well(&announcement);
    served = restart(served);
    NostrClient::connect(&served.url).publish_well(&state);
    served = restart(served);
    assert_eq!(served.home.json(&["held"])["held"], 2);
    work.git(&["push", &url, "main"]);
    served = restart(served);
    let mut client = NostrClient::connect(&served.url);
    assert_eq!(client.stored(&json!({ "authors": [owner.key()] })).len(), 2);
    let (_folder, copy) = clone(&url, &[]);
    assert_eq!(run_git(&copy, &["rev-parse", "HEAD"]).1.trim(), commit);
    served.stop();
}

#[test]
fn co_maintainers_who_name_each_other_share_and_strangers_do_not() {
    let served = start(Home::ready());
    let mut client = NostrClient::connect(&served.url);
    let (owner, friend, stranger, work) = (Author::new(4), Author::new(5), Author::new(6), Work::new());
    let url = |author: &Author| format!("{}/{}/tool.git", served.url, author.npub());
    let first = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[&friend.key()]));
    client.publish_well(&friend.announcement(&served.url, "tool", &[&owner.key()]));
    // The stranger names the owner, who does not name them.
    client.publish_well(&stranger.announcement(&served.url, "tool", &[&owner.key()]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &first)]));
    work.git(&["push", &url(&owner), "main"]);
    // One push was enough for both, and told the stranger nothing.
    assert!(work.git(&["ls-remote", &url(&friend)]).contains(&format!("{first}\trefs/heads/main")));
    assert_eq!(work.git(&["ls-remote", &url(&stranger)]), "");
    // The friend's newer state counts for both.
    let second = work.commit("two");
    client.publish_well(&friend.state("tool", &[("refs/heads/main", &second)]));
    work.git(&["push", &url(&friend), "main"]);
    assert!(work.git(&["ls-remote", &url(&owner)]).contains(&format!("{second}\trefs/heads/main")));
    // The stranger's does not.
    let third = work.commit("three");
    client.publish_well(&stranger.state("tool", &[("refs/heads/main", &third)]));
    let (is_pushed, said) = work.run(&["push", &url(&owner), "main"]);
    assert!(!is_pushed && said.contains("the newest repository state says"), "{said}");
}

#[test]
fn pull_requests_are_pushed_before_and_after_their_events() {
    let served = start(Home::ready());
    let mut client = NostrClient::connect(&served.url);
    let (owner, contributor, work) = (Author::new(7), Author::new(8), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let first = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &first)]));
    work.git(&["push", &url, "main"]);
    let address = format!("30617:{}:tool", owner.key());
    let request = |commit: &str| contributor.event(1618, &[&["a", &address], &["c", commit]], "please");
    // After its event.
    let second = work.commit("two");
    let pull_request = request(&second);
    assert_eq!(client.publish_well(&pull_request), WAITS);
    let name = format!("refs/nostr/{}", pull_request.id);
    let (is_pushed, said) = work.run(&["push", &url, &format!("{first}:{name}")]);
    assert!(!is_pushed && said.contains(&format!("the event is about commit {second}")), "{said}");
    work.git(&["push", &url, &format!("{second}:{name}")]);
    assert_eq!(client.stored(&json!({ "kinds": [1618] })), [pull_request.id.to_string()]);
    assert!(work.git(&["ls-remote", &url]).contains(&format!("{second}\t{name}")));
    // Before its event: the ref is there at once, and the event is served as soon as it comes.
    let third = work.commit("three");
    let early = request(&third);
    let name = format!("refs/nostr/{}", early.id);
    work.git(&["push", &url, &format!("{third}:{name}")]);
    assert!(work.git(&["ls-remote", &url]).contains(&format!("{third}\t{name}")));
    assert_eq!(client.publish_well(&early), "");
    // One whose commit is another loses its ref.
    let fourth = work.commit("four");
    let other = request(&third);
    let name = format!("refs/nostr/{}", other.id);
    work.git(&["push", &url, &format!("{fourth}:{name}")]);
    assert_eq!(client.publish_well(&other), "");
    while !work.git(&["ls-remote", &url]).contains(&format!("{third}\t{name}")) {}
    // Issues and comments come with what they refer to; others do not.
    let issue = contributor.event(1621, &[&["a", &address]], "it does not work");
    assert_eq!(client.publish_well(&issue), "");
    let comment = owner.event(1111, &[&["E", &issue.id.to_string()], &["K", "1621"]], "it does here");
    assert_eq!(client.publish_well(&comment), "");
    let (is_taken, said) = client.publish(&contributor.event(1, &[], "good morning"));
    assert!(!is_taken && said.starts_with("blocked: "), "{said}");
}

#[test]
fn a_deleted_announcement_takes_its_repository_along_and_nothing_older_comes_back() {
    let served = start(Home::ready());
    let mut client = NostrClient::connect(&served.url);
    let (owner, work) = (Author::new(9), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let first = work.commit("one");
    let old = owner.announcement(&served.url, "tool", &[]);
    let announcement = owner.announcement(&served.url, "tool", &[]);
    client.publish_well(&announcement);
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &first)]));
    work.git(&["push", &url, "main"]);
    let address = format!("30617:{}:tool", owner.key());
    client.publish_well(&owner.event(5, &[&["a", &address]], ""));
    assert_eq!(client.stored(&json!({ "kinds": [30617] })), [""; 0]);
    assert!(work.run(&["ls-remote", &url]).1.contains("not found"));
    client.publish(&old);
    assert_eq!(client.stored(&json!({ "kinds": [30617] })), [""; 0]);
    assert!(work.run(&["ls-remote", &url]).1.contains("not found"));
}

#[test]
fn large_pushes_are_streamed_and_what_waits_for_events_is_bounded() {
    let served = start(Home::ready());
    let mut client = NostrClient::connect(&served.url);
    let (owner, work) = (Author::new(10), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    // More than git sends in one piece, and nothing that could be compressed.
    std::fs::write(work.path().join("noise"), noise(6 << 20)).unwrap();
    work.git(&["add", "noise"]);
    let commit = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    work.git(&["push", &url, "main"]);
    let (_folder, copy) = clone(&url, &[]);
    assert_eq!(std::fs::metadata(copy.join("noise")).unwrap().len(), 6 << 20);
    // Commits for events that nobody has seen: some wait, more are refused.
    let names: Vec<String> = (1..34_u64).map(|number| format!("{commit}:refs/nostr/{number:064x}")).collect();
    let push = |names: &[String]| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        work.run(&[&["push", &url], names.as_slice()].concat())
    };
    let (is_pushed, said) = push(&names);
    assert!(!is_pushed && said.contains("publish the event first"), "{said}");
    let (is_pushed, said) = push(&names[..32]);
    assert!(is_pushed, "{said}");
    assert!(!push(&names[32..]).0);
    // What no event can have as its id is no pull request.
    let (is_pushed, said) = push(&[format!("{commit}:refs/nostr/{:064x}", 0)]);
    assert!(!is_pushed && said.contains("the newest repository state does not have this ref"), "{said}");
}

#[test]
fn a_maintainer_who_joins_later_has_what_is_here() {
    let served = start(Home::ready());
    let mut client = NostrClient::connect(&served.url);
    let (owner, friend, work) = (Author::new(11), Author::new(12), Work::new());
    let url = |author: &Author| format!("{}/{}/tool.git", served.url, author.npub());
    let first = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &first)]));
    work.git(&["push", &url(&owner), "main"]);
    // The friend names the owner first, which is not enough; then the owner names the friend.
    let theirs = friend.announcement(&served.url, "tool", &[&owner.key()]);
    assert_eq!(client.publish_well(&theirs), WAITS);
    assert_eq!(work.git(&["ls-remote", &url(&friend)]), "");
    client.publish_well(&owner.announcement(&served.url, "tool", &[&friend.key()]));
    while !client.stored(&json!({ "kinds": [30617] })).contains(&theirs.id.to_string()) {}
    while !work.git(&["ls-remote", &url(&friend)]).contains(&format!("{first}\trefs/heads/main")) {}
    // When the owner's announcement goes, the friend's repository is only what the friend's own states say.
    client.publish_well(&owner.event(5, &[&["a", &format!("30617:{}:tool", owner.key())]], ""));
    while work.git(&["ls-remote", &url(&friend)]).contains("refs/heads/main") {}
}

#[test]
fn a_state_about_what_refs_reach_waits_for_nothing() {
    let served = start(Home::ready());
    let (owner, mut client, work) = (Author::new(13), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let (first, second) = (work.commit("one"), work.commit("two"));
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &second)]));
    work.git(&["push", &url, "main"]);
    // Only the second was named so far.
    let tagged = owner.state("tool", &[("refs/heads/main", &second), ("refs/tags/v1", &first)]);
    client.publish_well(&tagged);
    while client.stored(&json!({ "kinds": [30618] })) != [tagged.id.to_string()] {}
    while !work.git(&["ls-remote", &url]).contains(&format!("{first}\trefs/tags/v1")) {}
}

#[test]
fn nothing_is_kept_that_no_ref_reaches() {
    let served = start(Home::ready());
    let (owner, mut client, work) = (Author::new(14), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let first = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &first)]));
    // More objects than the refs need.
    std::fs::write(work.path().join("stray"), "nobody asked for this").unwrap();
    let stray = work.git(&["hash-object", "-w", "stray"]);
    let listed = work.git(&["rev-list", "--objects", "--no-object-names", &first]);
    let needed: Vec<&str> = listed.lines().collect();
    // Something that the commit needs is missing.
    let answer = push_raw(&work, &url, "refs/heads/main", &first, &needed[..2]);
    assert!(answer.contains("ng refs/heads/main"), "{answer}");
    assert_eq!(work.git(&["ls-remote", &url]), "");
    let answer = push_raw(&work, &url, "refs/heads/main", &first, &[needed.as_slice(), &[&stray]].concat());
    assert!(answer.contains("ok refs/heads/main"), "{answer}");
    let (_folder, copy) = clone(&url, &[]);
    assert!(run_git(&copy, &["fetch", "--quiet", &url, &first]).0);
    assert!(!run_git(&copy, &["fetch", "--quiet", &url, &stray]).0, "an object that nothing reaches is handed out");
    // What a branch leaves goes in time.
    work.git(&["checkout", "--quiet", "--orphan", "other"]);
    let second = work.commit("two");
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &second)]));
    work.git(&["push", "--force", &url, "other:main"]);
    let store = object_stores(&served.home.data()).pop().unwrap();
    while run_git(&store, &["cat-file", "-e", &first]).0 {}
    assert!(run_git(&store, &["cat-file", "-e", &second]).0);
    let (_folder, copy) = clone(&url, &[]);
    assert_eq!(run_git(&copy, &["rev-parse", "HEAD"]).1.trim(), second);
    // A state that goes back has to be pushed again.
    let back = owner.state("tool", &[("refs/heads/main", &first)]);
    assert_eq!(client.publish_well(&back), WAITS);
    work.git(&["push", "--force", &url, &format!("{first}:refs/heads/main")]);
    assert_eq!(client.stored(&json!({ "kinds": [30618] })), [back.id.to_string()]);
    // With its announcement the repository goes.
    client.publish_well(&owner.event(5, &[&["a", &format!("30617:{}:tool", owner.key())]], ""));
    while !object_stores(&served.home.data()).is_empty() {}
}

#[test]
fn as_many_objects_as_are_needed_need_not_be_those() {
    let served = start(Home::ready());
    let (owner, mut client, work) = (Author::new(16), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    work.commit("one");
    let second = work.commit("two");
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &second)]));
    work.git(&["push", &url, "main"]);
    // Back to what was: a commit with a folder and a file that are here already.
    let third = work.commit("one");
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &third)]));
    let stray = |text: &str| {
        std::fs::write(work.path().join("stray"), text).unwrap();
        work.git(&["hash-object", "-w", "stray"])
    };
    let (junk, more) = (stray("junk"), stray("more junk"));
    let answer = push_raw(&work, &url, "refs/heads/main", &third, &[&third, &junk, &more]);
    assert!(answer.contains("ok refs/heads/main"), "{answer}");
    let (_folder, copy) = clone(&url, &[]);
    assert_eq!(run_git(&copy, &["rev-parse", "HEAD"]).1.trim(), third);
    for oid in [junk, more] {
        assert!(!run_git(&copy, &["fetch", "--quiet", &url, &oid]).0, "an object that nothing reaches is handed out");
    }
}

/// Pushes two commits, or one file of 2 MiB, to a node with a limit, or the large one as a pull request: what is said.
fn push_beyond(limit: &str, is_large: bool, is_pull_request: bool) -> String {
    let served = Served::start(Home::ready(), &["--set", "git.enabled=1", "--set", limit]);
    let (owner, mut client, work) = (Author::new(15), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    if is_large {
        std::fs::write(work.path().join("noise"), noise(2 << 20)).unwrap();
        work.git(&["add", "noise"]);
    } else {
        work.commit("one");
    }
    let commit = work.commit("two");
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    let name = if is_pull_request { format!("refs/nostr/{:064x}", 1) } else { "refs/heads/main".to_owned() };
    let (is_pushed, said) = work.run(&["push", &url, &format!("main:{name}")]);
    assert!(!is_pushed, "{limit}: {said}");
    assert_eq!(work.git(&["ls-remote", &url]), "", "{limit}");
    said
}

#[test]
fn pushes_and_repositories_have_their_limits() {
    for (limit, is_large, is_pull_request, why) in [
        ("git.push_objects_max=4", false, false, "the pack has 6 objects; at most 4 are taken"),
        ("git.push_mib_max=1", true, false, "exceeds maximum allowed size"),
        ("git.repository_mib_max=1", true, false, "exceeds maximum allowed size"),
        ("git.owner_mib_max=1", true, false, "exceeds maximum allowed size"),
        ("git.object_mib_max=1", true, false, "over limit"),
        ("git.pull_request_mib_max=1", true, true, "exceeds maximum allowed size"),
    ] {
        let said = push_beyond(limit, is_large, is_pull_request);
        assert!(said.contains(why), "{limit}: {said}");
    }
    let served = Served::start(Home::ready(), &["--set", "git.enabled=1", "--set", "git.owner_repositories_max=1"]);
    let (owner, mut client, work) = (Author::new(17), NostrClient::connect(&served.url), Work::new());
    let commit = work.commit("one");
    for (identifier, is_taken) in [("first", true), ("second", false)] {
        client.publish_well(&owner.announcement(&served.url, identifier, &[]));
        client.publish_well(&owner.state(identifier, &[("refs/heads/main", &commit)]));
        let (is_pushed, said) =
            work.run(&["push", &format!("{}/{}/{identifier}.git", served.url, owner.npub()), "main"]);
        assert_eq!(is_pushed, is_taken, "{said}");
        assert_eq!(said.contains("at most 1 take pushes"), !is_taken, "{said}");
    }
}
