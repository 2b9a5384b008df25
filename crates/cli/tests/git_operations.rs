//! What an operator does with git repositories: contributors, lists, bans, backups, checks and salvage, through the real
//! binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::git_work::{Work, clone, host_repository, noise, object_stores, push_raw, run_git};
use common::nostr_client::{Author, NostrClient, relay_document};
use common::served::Served;
use serde_json::json;

const WAITS: &str = "purgatory: won't be served until git data arrives";

fn start(home: Home, settings: &[&str]) -> Served {
    let mut words = vec!["--set", "git.enabled=1"];
    words.extend(settings.iter().flat_map(|setting| ["--set", *setting]));
    Served::start(home, &words)
}

/// A pull request whose commit is in the contributor's own repository.
fn contribution(author: &Author, url: &str, address: &str, commit: &str) -> model::nostr::NostrEvent {
    let clone = format!("{url}/prs/{}/tool.git", author.npub());
    author.event(1618, &[&["a", address], &["c", commit], &["clone", &clone]], "please")
}

#[test]
fn contributors_without_a_repository_push_pull_requests() {
    let served = start(Home::ready(), &["git.contributions=1"]);
    let (owner, contributor, mut client) = (Author::new(31), Author::new(32), NostrClient::connect(&served.url));
    let address = host_repository(&mut client, &served.url, &owner, "tool");
    let announced = format!("{}/{}/tool.git", served.url, owner.npub());
    let own = format!("{}/prs/{}/tool.git", served.url, contributor.npub());
    let work = Work::new();
    // An empty repository, of which nothing is kept, until something is pushed.
    let before = object_stores(&served.home.data()).len();
    assert_eq!(work.git(&["ls-remote", &own]), "");
    assert_eq!(object_stores(&served.home.data()).len(), before);
    let commit = work.commit("a change");
    let (is_pushed, said) = work.run(&["push", &own, "main"]);
    assert!(!is_pushed && said.contains("only commits of pull requests are pushed here"), "{said}");
    // First the event, then the commit: it is released, and mirrored into the announced repository.
    let event = contribution(&contributor, &served.url, &address, &commit);
    let name = format!("refs/nostr/{}", event.id);
    assert_eq!(client.publish_well(&event), WAITS);
    let other = work.commit("another change");
    let (is_pushed, said) = work.run(&["push", &own, &format!("{other}:{name}")]);
    assert!(!is_pushed && said.contains(&format!("the event is about commit {commit}")), "{said}");
    assert_eq!(object_stores(&served.home.data()).len(), before, "nothing is kept of a refused push");
    let blob = work.git(&["rev-parse", "HEAD:file"]);
    let said = push_raw(&work, &own, &name, &commit, &[&blob]);
    assert!(said.contains("objects that the refs need are missing"), "{said}");
    wait_for(|| object_stores(&served.home.data()).len() == before);
    let listed = served.home.json(&["repos", "list"])["repositories"].to_string();
    assert!(!listed.contains(&contributor.npub()), "{listed}");
    work.git(&["push", &own, &format!("{commit}:{name}")]);
    assert_eq!(client.stored(&json!({ "kinds": [1618] })), [event.id.to_string()]);
    for url in [&own, &announced] {
        wait_for(|| work.git(&["ls-remote", url]).contains(&format!("{commit}\t{name}")));
    }
    // First the commit, then the event.
    let later = contribution(&contributor, &served.url, &address, &other);
    let name = format!("refs/nostr/{}", later.id);
    work.git(&["push", &own, &format!("{other}:{name}")]);
    assert!(!work.git(&["ls-remote", &announced]).contains(&name), "never the other way, nor before its event");
    assert_eq!(client.publish_well(&later), "");
    wait_for(|| work.git(&["ls-remote", &announced]).contains(&format!("{other}\t{name}")));
    // What is pushed to the announced repository is not in the contributor's.
    let direct = work.commit("a third change");
    let event = contributor.event(1618, &[&["a", &address], &["c", &direct]], "");
    client.publish_well(&event);
    work.git(&["push", &announced, &format!("{direct}:refs/nostr/{}", event.id)]);
    assert!(!work.git(&["ls-remote", &own]).contains(&direct));
    let information = relay_document(&served.url).to_string();
    assert!(information.contains("\"GRASP-06\""), "{information}");
    served.stop();
}

#[test]
fn contributions_need_no_announced_repository_and_are_off_by_default() {
    let served = start(Home::ready(), &["git.contributions=1"]);
    let (contributor, mut client, work) = (Author::new(33), NostrClient::connect(&served.url), Work::new());
    let address = format!("30617:{}:tool", Author::new(34).key());
    let own = format!("{}/prs/{}/tool.git", served.url, contributor.npub());
    let commit = work.commit("a change");
    // Somebody else's repository, and none at all: neither is taken.
    for clone in [own.replace(&contributor.npub(), &Author::new(35).npub()), "https://elsewhere.example/x.git".into()] {
        let event = contributor.event(1618, &[&["a", &address], &["c", &commit], &["clone", &clone]], "");
        assert!(!client.publish(&event).0, "{clone}");
    }
    let event = contribution(&contributor, &served.url, &address, &commit);
    assert_eq!(client.publish_well(&event), WAITS);
    work.git(&["push", &own, &format!("{commit}:refs/nostr/{}", event.id)]);
    assert_eq!(client.stored(&json!({ "kinds": [1618] })), [event.id.to_string()]);
    let (_folder, copy) = clone(&own, &["--no-checkout"]);
    assert!(run_git(&copy, &["fetch", "--quiet", "origin", &format!("refs/nostr/{}", event.id)]).0);
    // It goes with its pull request.
    client.publish_well(&contributor.event(5, &[&["e", &event.id.to_string()]], ""));
    wait_for(|| object_stores(&served.home.data()).is_empty());
    let served = start(served.kill(), &[]);
    assert!(
        work.run(&["ls-remote", &own.replace(&own[..own.find("/prs").unwrap()], &served.url)]).1.contains("not found")
    );
    let information = relay_document(&served.url).to_string();
    assert!(!information.contains("GRASP-06"), "{information}");
}

#[test]
fn what_is_banned_goes_from_the_disk_and_is_served_and_counted_no_more() {
    let served = start(Home::ready(), &[]);
    let (owner, other, mut client) = (Author::new(51), Author::new(52), NostrClient::connect(&served.url));
    host_repository(&mut client, &served.url, &owner, "tool");
    host_repository(&mut client, &served.url, &owner, "kept");
    host_repository(&mut client, &served.url, &other, "tool");
    assert_eq!(object_stores(&served.home.data()).len(), 3);
    let banned = format!("{}/tool, {}", owner.npub(), other.npub());
    let listen = served.url.trim_start_matches("http://").to_owned();
    let words = ["--set", "git.enabled=1", "--listen", &listen];
    let served = Served::start_with(served.kill(), &words, &[("ANTEROOM_GIT_BANNED", &banned)]);
    wait_for(|| object_stores(&served.home.data()).len() == 1);
    let work = Work::new();
    assert!(work.run(&["ls-remote", &format!("{}/{}/tool.git", served.url, owner.npub())]).1.contains("not found"));
    work.git(&["ls-remote", &format!("{}/{}/kept.git", served.url, owner.npub())]);
    let mut client = NostrClient::connect(&served.url);
    client.say(&json!(["COUNT", "all", { "authors": [other.key()] }]));
    assert_eq!(client.hear(), json!(["COUNT", "all", { "count": 0 }]));
    assert_eq!(client.stored(&json!({ "authors": [other.key()] })), [""; 0]);
    served.stop();
}

#[test]
fn repositories_are_in_backups_and_come_back() {
    let served = start(Home::ready(), &[]);
    let (owner, mut client, work) = (Author::new(61), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let commit = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit), ("refs/tags/v1", &commit)]));
    work.git(&["push", &url, "main", &format!("{commit}:refs/tags/v1")]);
    let refs = work.git(&["ls-remote", &url]);
    let kept = &served.home.json(&["status"])["repositories"];
    assert_eq!((&kept[0]["owner"], &kept[0]["identifier"]), (&json!(owner.npub()), &json!("tool")));
    assert!(kept[0]["bytes"].as_u64() > Some(100) && kept[1].is_null(), "{kept}");
    assert_eq!(served.home.json(&["backup", "running"])["git_stores"], 1);
    let listen = served.url.trim_start_matches("http://").to_owned();
    let mut home = served.kill();
    assert_eq!(home.json(&["backup", "stopped"])["git_stores"], 1);
    for backup in ["running", "stopped"] {
        let new = format!("{backup}-data");
        let folder = ["--data-dir", &new, "--master-key", "anteroom-data/master.key"];
        let restored = home.json(&[&folder[..], &["restore", backup]].concat());
        assert_eq!(restored["git_stores"], 1);
        assert_eq!(home.json(&[&folder[..], &["verify"]].concat())["problems"], json!([]));
        let served = Served::start(home, &[&folder[..], &["--set", "git.enabled=1", "--listen", &listen]].concat());
        assert_eq!(work.git(&["ls-remote", &url]), refs);
        let (_folder, copy) = clone(&url, &[]);
        assert_eq!(run_git(&copy, &["rev-parse", "HEAD"]).1.trim(), commit);
        home = served.kill();
        assert_eq!(home.json(&[&folder[..], &["verify"]].concat())["problems"], json!([]));
    }
}

#[test]
fn where_nothing_was_pushed_nothing_is_missed_after_a_restore() {
    let served = start(Home::ready(), &[]);
    let (owner, mut client, work) = (Author::new(62), NostrClient::connect(&served.url), Work::new());
    let (url, commit) = (format!("{}/{}/tool.git", served.url, owner.npub()), work.commit("one"));
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    let said = push_raw(&work, &url, "refs/heads/main", &commit, &[&work.git(&["rev-parse", "HEAD:file"])]);
    assert!(said.contains("objects that the refs need are missing"), "{said}");
    assert_eq!(served.home.json(&["backup", "copy"])["git_stores"], 0);
    let home = served.kill();
    let folder = ["--data-dir", "new", "--master-key", "anteroom-data/master.key"];
    home.json(&[&folder[..], &["restore", "copy"]].concat());
    let log = Served::start(home, &[&folder[..], &["--set", "git.enabled=1"]].concat()).stop();
    assert!(!log.contains("are gone"), "{log}");
}

#[test]
fn damage_of_repositories_is_named_and_the_rest_salvaged() {
    let served = start(Home::ready(), &[]);
    let (owner, mut client, work) = (Author::new(71), NostrClient::connect(&served.url), Work::new());
    host_repository(&mut client, &served.url, &owner, "whole");
    let first = object_stores(&served.home.data());
    // Two branches that have nothing in common, each in a pack of its own.
    let main = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "broken", &[]));
    client.publish_well(&owner.state("broken", &[("refs/heads/main", &main)]));
    let url = format!("{}/{}/broken.git", served.url, owner.npub());
    work.git(&["push", &url, "main"]);
    let broken = object_stores(&served.home.data()).into_iter().find(|store| !first.contains(store)).unwrap();
    let packs = || std::fs::read_dir(broken.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let before: Vec<_> = packs().collect();
    work.git(&["checkout", "--quiet", "--orphan", "other"]);
    let other = work.commit("two");
    client.publish_well(&owner.state("broken", &[("refs/heads/main", &main), ("refs/heads/other", &other)]));
    work.git(&["push", &url, "other"]);
    let listen = served.url.trim_start_matches("http://").to_owned();
    let home = served.kill();
    packs().filter(|pack| !before.contains(pack)).for_each(|pack| std::fs::remove_file(pack).unwrap());
    let told = |words: &[&str]| {
        let ran = home.run(&[&["--json"], words].concat());
        (ran.code, ran.out)
    };
    let (code, problems) = told(&["verify"]);
    assert!(code == 1 && problems.contains("is damaged") && problems.contains("repository broken of"), "{problems}");
    let (code, made) = told(&["backup", "backup"]);
    assert!(code == 3 && made.contains("\"damaged\": 1") && made.contains("\"git_stores\": 1"), "{made}");
    let (code, salvaged) = told(&["salvage", "new"]);
    assert!(code == 3 && salvaged.contains("refs/heads/other in the git repository broken"), "{salvaged}");
    assert!(!salvaged.contains("refs/heads/main") && salvaged.contains("\"held\": 0"), "{salvaged}");
    let served = Served::start(home, &["--data-dir", "new", "--set", "git.enabled=1", "--listen", &listen]);
    let (_folder, copy) = clone(&format!("{}/{}/whole.git", served.url, owner.npub()), &[]);
    assert_eq!(std::fs::read_to_string(copy.join("file")).unwrap(), "one");
    // Events stay applied, and what was lost can be pushed again.
    assert_eq!(NostrClient::connect(&served.url).stored(&json!({ "kinds": [30618] })).len(), 2);
    wait_for(|| work.git(&["ls-remote", &url]).contains("refs/heads/main"));
    assert!(!work.git(&["ls-remote", &url]).contains("refs/heads/other"));
    work.git(&["push", &url, "other"]);
    assert!(work.git(&["ls-remote", &url]).contains(&format!("{other}\trefs/heads/other")));
    served.stop();
}

#[test]
fn one_repository_is_checked_and_archived_whether_the_node_runs_or_not() {
    let served = start(Home::ready(), &[]);
    let (owner, other) = (Author::new(73), Author::new(74));
    let mut client = NostrClient::connect(&served.url);
    host_repository(&mut client, &served.url, &owner, "tool");
    host_repository(&mut client, &served.url, &other, "tool");
    let name = format!("{}/tool", owner.npub());
    let checked = served.home.json(&["repos", "verify"]);
    assert_eq!((&checked["repositories"], &checked["problems"]), (&json!(2), &json!([])), "{checked}");
    assert_eq!(served.home.json(&["repos", "verify", &name])["repositories"], json!(1));
    let archived = served.home.json(&["repos", "archive", &name, "tool.bundle"]);
    assert_eq!(archived["refs"], json!(1), "{archived}");
    let ran = served.home.run(&["repos", "archive", &name, "tool.bundle"]);
    assert!(ran.code != 0 && ran.err.contains("already exists"), "{}", ran.err);
    let folder = served.home.path().to_owned();
    let (_clone, copy) = clone(folder.join("tool.bundle").to_str().unwrap(), &[]);
    assert_eq!(std::fs::read_to_string(copy.join("file")).unwrap(), "one");
    assert_eq!(run_git(&copy, &["symbolic-ref", "--short", "HEAD"]).1.trim(), "main");
    for words in [["repos", "verify", &format!("{name}x")].as_slice(), &["repos", "archive", &format!("{name}x"), "x"]]
    {
        let ran = served.home.run(words);
        assert!(ran.code != 0 && ran.err.contains("nothing is kept of"), "{}", ran.err);
    }
    // The same without a node, and damage of one is not damage of the other.
    let home = served.kill();
    assert_eq!(home.json(&["repos", "archive", &name, "again.bundle"])["refs"], json!(1));
    for store in object_stores(&home.data()) {
        let refs = store.join("refs/namespaces").join(owner.key());
        if refs.exists() {
            std::fs::remove_dir_all(store.join("objects/pack")).unwrap();
            std::fs::create_dir(store.join("objects/pack")).unwrap();
        }
    }
    let ran = home.run(&["repos", "verify", &name]);
    assert!(ran.code == 1 && ran.out.contains("is damaged"), "{} {}", ran.out, ran.err);
    assert_eq!(home.run(&["repos", "verify", &format!("{}/tool", other.npub())]).code, 0);
}

#[test]
fn a_store_that_is_gone_is_named_and_pushed_again() {
    let served = start(Home::ready(), &[]);
    let (owner, mut client, work) = (Author::new(72), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let commit = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    work.git(&["push", &url, "main"]);
    let listen = served.url.trim_start_matches("http://").to_owned();
    let home = served.kill();
    object_stores(&home.data()).into_iter().for_each(|store| std::fs::remove_dir_all(store).unwrap());
    let verified = home.run(&["verify"]);
    assert!(verified.code == 1 && verified.out.contains("its objects are gone"), "{}", verified.out);
    let served = Served::start(home, &["--set", "git.enabled=1", "--listen", &listen]);
    assert_eq!(work.git(&["ls-remote", &url]), "");
    // A tag on what is gone is not taken for something that is here.
    let mut client = NostrClient::connect(&served.url);
    let refs = [("refs/heads/main", commit.as_str()), ("refs/tags/v1", commit.as_str())];
    assert_eq!(client.publish_well(&owner.state("tool", &refs)), WAITS);
    work.git(&["push", &url, "main", &format!("{commit}:refs/tags/v1")]);
    let (_folder, copy) = clone(&url, &[]);
    assert_eq!(run_git(&copy, &["rev-parse", "HEAD"]).1.trim(), commit);
}

#[test]
fn what_strangers_push_in_somebodys_name_uses_up_nothing_of_theirs() {
    let served = start(Home::ready(), &["git.contributions=1", "git.owner_repositories_max=1"]);
    let (owner, mut client, work) = (Author::new(73), NostrClient::connect(&served.url), Work::new());
    let commit = work.commit("not theirs");
    for (identifier, is_taken) in [("x", true), ("y", false)] {
        let url = format!("{}/prs/{}/{identifier}.git", served.url, owner.npub());
        let (is_pushed, said) = work.run(&["push", &url, &format!("{commit}:refs/nostr/{:064x}", 7)]);
        assert_eq!(is_pushed, is_taken, "{identifier}: {said}");
    }
    host_repository(&mut client, &served.url, &owner, "tool");
}

#[test]
fn a_pull_request_that_is_applied_already_can_be_pushed_elsewhere_too() {
    let served = start(Home::ready(), &["git.contributions=1"]);
    let (owner, contributor, mut client) = (Author::new(74), Author::new(75), NostrClient::connect(&served.url));
    let address = host_repository(&mut client, &served.url, &owner, "tool");
    let (announced, own) = (
        format!("{}/{}/tool.git", served.url, owner.npub()),
        format!("{}/prs/{}/tool.git", served.url, contributor.npub()),
    );
    let work = Work::new();
    let event = contribution(&contributor, &served.url, &address, &work.commit("a change"));
    let refs = format!("main:refs/nostr/{}", event.id);
    client.publish_well(&event);
    work.git(&["push", &announced, &refs]);
    work.git(&["push", &own, &refs]);
    assert!(work.git(&["ls-remote", &own]).contains(&event.id.to_string()));
}

#[test]
fn a_pack_that_becomes_too_large_is_not_taken() {
    let served = start(Home::ready(), &["git.repository_mib_max=1"]);
    let (owner, mut client, work) = (Author::new(76), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    // A few kilobytes on the way.
    std::fs::write(work.path().join("zeros"), vec![0; 20 << 20]).unwrap();
    work.git(&["add", "zeros"]);
    let commit = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    let (is_pushed, said) = work.run(&["push", &url, "main"]);
    assert!(!is_pushed && said.contains("bytes inflated; at most 16777216 are taken"), "{said}");
    assert_eq!(work.git(&["ls-remote", &url]), "");
}

#[test]
fn branches_of_a_full_repository_can_be_deleted() {
    let served = start(Home::ready(), &[]);
    let (owner, mut client, work) = (Author::new(78), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    std::fs::write(work.path().join("noise"), noise(2 << 20)).unwrap();
    work.git(&["add", "noise"]);
    let commit = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit), ("refs/heads/old", &commit)]));
    work.git(&["push", &url, "main", "main:refs/heads/old"]);
    // The operator allows less from now on.
    let listen = served.url.trim_start_matches("http://").to_owned();
    let words = ["--set", "git.enabled=1", "--set", "git.repository_mib_max=1", "--listen", &listen];
    let served = Served::start_with(served.kill(), &words, &[]);
    let mut client = NostrClient::connect(&served.url);
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &commit)]));
    // The second time it is gone already, as it may be the first time: refs follow the state by themselves.
    for _ in 0..2 {
        let (is_pushed, said) = work.run(&["push", &url, ":refs/heads/old"]);
        assert!(is_pushed, "{said}");
    }
    assert!(!work.git(&["ls-remote", &url]).contains("refs/heads/old"));
    let more = work.commit("two");
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &more)]));
    let (is_pushed, said) = work.run(&["push", &url, "main"]);
    assert!(!is_pushed && said.contains("as large as they may be"), "{said}");
}

#[test]
fn looking_leaves_nothing_and_branches_point_at_commits_that_are_there() {
    let served = start(Home::ready(), &[]);
    let (owner, mut client, work) = (Author::new(77), NostrClient::connect(&served.url), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let commit = work.commit("one");
    let announcement = owner.announcement(&served.url, "tool", &[]);
    client.publish_well(&announcement);
    assert_eq!(work.git(&["ls-remote", &url]), "");
    assert!(!work.run(&["push", &url, "main"]).0);
    assert_eq!(object_stores(&served.home.data()).len(), 0);
    let blob = work.git(&["rev-parse", "HEAD:file"]);
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &blob)]));
    let answer = push_raw(&work, &url, "refs/heads/main", &blob, &[&blob]);
    assert!(answer.contains("a branch, or a pull request, points at a commit"), "{answer}");
    // `HEAD` names a branch that is not there.
    client.publish_well(&owner.state("tool", &[("refs/heads/other", &commit)]));
    let listed = work.git(&["rev-list", "--objects", "--no-object-names", &commit]);
    let answer = push_raw(&work, &url, "refs/heads/other", &commit, &listed.lines().collect::<Vec<_>>());
    assert!(answer.contains("ok refs/heads/other"), "{answer}");
    // What its author deleted does not come again, and repositories do not expire.
    client.publish_well(&owner.event(5, &[&["a", &format!("30617:{}:gone", owner.key())]], ""));
    let tags: [&[&str]; 2] = [&["d", "short"], &["expiration", "4000000000"]];
    assert!(client.publish(&owner.event(30617, &tags, "")).1.contains("do not expire here"));
    let home = served.kill();
    assert_eq!(home.json(&["verify"])["problems"], json!([]));
}

/// Waits until something is so, for as long as a test may take.
fn wait_for(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}
