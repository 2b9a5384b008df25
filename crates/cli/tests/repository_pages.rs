//! The pages of git repositories through the real binary: what a browser gets of files, history, differences and
//! discussions, and what strangers write into them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::browsing::{RUNS as WRITES, get, get_with, on_all_pages};
use common::git_work::{Work, clone};
use common::nostr_client::{Author, NostrClient};
use common::served::Served;

/// A repository with folders, a README, a branch, a tag, and files of all kinds.
struct Hosted {
    served: Served,
    owner: Author,
    client: NostrClient,
    work: Work,
    /// The address of its page.
    url: String,
    first: String,
    second: String,
}

fn host() -> Hosted {
    let served = Served::start(Home::ready(), &["--set", "git.enabled=1"]);
    let (owner, mut client, work) = (Author::new(1), NostrClient::connect(&served.url), Work::new());
    let write = |path: &str, bytes: &[u8]| {
        let path = work.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    write(
        "README.md",
        format!("# The tool\n\nSee [the guide](docs/guide.md) {WRITES}\n\n![shot](shot.png)\n").as_bytes(),
    );
    write("docs/guide.md", b"# Guide\n\n[back](../README.md)\n");
    write("src/main.rs", format!("fn main() {{\n    let n = 42; // {WRITES}\n}}\n").as_bytes());
    write("page.html", WRITES.as_bytes());
    write("shot.png", b"\x89PNG\r\n\x1a\n\0rest");
    write("data.bin", b"\0\x01\x02");
    write("long.txt", "line\n".repeat(200_000).as_bytes());
    write("a b%c#d.txt", b"odd name");
    work.git(&["add", "-A"]);
    let first = work.commit("one");
    write("src/main.rs", b"fn main() {\n    let n = 43;\n}\n");
    work.git(&["add", "-A"]);
    let second = work.commit(&format!("two {WRITES}"));
    work.git(&["tag", "-a", "v1", "-m", "first", &first]);
    let tag = work.git(&["rev-parse", "refs/tags/v1"]).trim().to_owned();
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let relay = served.url.replacen("http", "ws", 1);
    let tags: [&[&str]; 5] = [
        &["d", "tool"],
        &["name", &format!("Tool {WRITES}")],
        &["description", "Does things"],
        &["clone", &url],
        &["relays", &relay],
    ];
    client.publish_well(&owner.event(30617, &tags, ""));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &second), ("refs/tags/v1", &tag)]));
    work.git(&["push", &url, "main", "v1"]);
    Hosted { served, owner, client, work, url, first, second }
}

#[test]
fn a_browser_sees_files_history_and_differences() {
    let Hosted { served, owner, url, first, second, .. } = host();
    let page = get(&url).says(&["git clone", "Does things", "src/", "README.md", "id=\"doc-the-tool\"", "nostr://"]);
    assert!(page.contains("/raw?at=refs%2Fheads%2Fmain&amp;path=shot.png"), "{page}");
    assert!(page.contains("/files?at=refs%2Fheads%2Fmain&amp;path=docs%2Fguide.md"), "{page}");
    // Without `.git` it is the same page.
    let short = get(url.trim_end_matches(".git"));
    assert_eq!((short.status, short.header("location")), (303, url.trim_start_matches(&served.url)));
    get(&format!("{}/repositories", served.url)).says(&["Does things", &owner.npub()[..12]]);
    get(&format!("{url}/files?path=src")).says(&["main.rs", ".."]);
    get(&format!("{url}/files?path=src/main.rs")).says(&[
        "<i class=\"k\">fn</i>",
        "<i class=\"n\">43</i>",
        "id=\"L3\"",
    ]);
    get(&format!("{url}/files?at=v1&path=src/main.rs")).says(&["<i class=\"n\">42</i>", "&lt;script&gt;"]);
    get(&format!("{url}/files?at={first}&path=src/main.rs")).says(&["<i class=\"n\">42</i>"]);
    get(&format!("{url}/files?path=a%20b%25c%23d.txt"))
        .says(&["odd name", "raw?at=refs%2Fheads%2Fmain&amp;path=a%20b%25c%23d.txt"]);
    get(&format!("{url}/files?path=docs/guide.md")).says(&["doc-guide", "path=README.md", "As it was written"]);
    get(&format!("{url}/files?path=docs/guide.md&plain=1")).says(&["[back](../README.md)"]);
    get(&format!("{url}/files?path=data.bin")).says(&["a binary file"]);
    get(&format!("{url}/files?path=shot.png")).says(&["<img class=\"picture\""]);
    get(&format!("{url}/files?path=long.txt")).says(&[
        "The first 5000 lines",
        "The whole file",
        "512.0 KiB of 976.6 KiB",
    ]);
    get(&format!("{url}/commits")).says(&[&first[..10], &second[..10], "&lt;script&gt;"]);
    let changed = get(&format!("{url}/commits?path=src/main.rs&at={first}")).says(&[&first[..10]]);
    assert!(!changed.contains(&second[..10]));
    get(&format!("{url}/commits?skip=1")).says(&[&first[..10], "Newer"]);
    let told = get(&format!("{url}/commit/{second}"));
    told.says(&["2 files differ", "+1 −1", "src/main.rs", &first[..10], "<span class=\"removed\">-    let n = 42;"]);
    get(&format!("{url}/commit/{first}")).says(&["files differ", "added"]);
    get(&format!("{url}/branches")).says(&["main", "default", "v1"]);
    // What is not there says so.
    for path in ["/commits?path=..", "/commits?path=a/../../x", "/commits?path=%00"] {
        get(&format!("{url}{path}")).says(&["no commits here"]);
    }
    for path in [
        "/files?path=nothing",
        "/files?at=nothing",
        "/commit/0000",
        &format!("/commit/{}", "ab".repeat(20)),
        "/issues/x",
        "/files?path=../../etc/passwd",
        "/files?at=--upload-pack%3Dx",
        "/raw?path=src",
        "/files?path=a%0Ab",
        "/files?at=%00",
    ] {
        let answer = get(&format!("{url}{path}"));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        assert!(answer.header("content-type").starts_with("text/html"), "{path}");
    }
    assert_eq!(get(&format!("{url}/commits?skip=100001")).status, 422);
}

#[test]
fn nothing_in_a_repository_runs_on_this_origin() {
    let Hosted { served: _served, url, second, first, .. } = host();
    for (path, kind, shown) in [
        ("page.html", "text/plain; charset=utf-8", "inline"),
        ("src/main.rs", "text/plain; charset=utf-8", "inline"),
        ("shot.png", "image/png", "inline"),
        ("data.bin", "application/octet-stream", "attachment"),
        ("long.txt", "text/plain; charset=utf-8", "inline"),
    ] {
        let answer = get(&format!("{url}/raw?path={path}"));
        assert_eq!((answer.status, answer.header("content-type")), (200, kind), "{path}");
        assert!(answer.header("content-disposition").starts_with(shown), "{path}: {}", answer.head);
        assert!(answer.header("content-security-policy").contains("sandbox"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("cache-control"), "no-cache", "somebody may push: {path}");
        let tag = answer.header("etag").to_owned();
        assert_eq!(
            get_with(&format!("{url}/raw?path={path}"), &format!("If-None-Match: {tag}\r\n")).status,
            304,
            "{path}"
        );
    }
    let long = get(&format!("{url}/raw?path=long.txt"));
    assert_eq!((long.body.len(), long.header("content-length")), (1_000_000, "1000000"));
    assert_eq!(get(&format!("{url}/raw?path=src/main.rs&at={first}")).text().matches("42").count(), 1);
    let patch = get(&format!("{url}/commit/{second}/patch"));
    assert!(patch.header("content-type").starts_with("text/plain") && patch.text().contains("+    let n = 43;"));
    assert!(patch.header("content-security-policy").contains("sandbox"));
    let archive = get(&format!("{url}/archive?at=v1"));
    assert_eq!(archive.header("content-type"), "application/gzip");
    assert!(archive.header("content-disposition").contains("attachment; filename*=UTF-8''tool-v1.tar.gz"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.tar.gz"), &archive.body).unwrap();
    let unpack = std::process::Command::new("tar").args(["xzf", "a.tar.gz"]).current_dir(&folder).status().unwrap();
    assert!(unpack.success() && folder.path().join("tool-v1/src/main.rs").exists());
    // Pages have the strict policy of all pages.
    let page = get(&url);
    assert!(page.header("content-security-policy").contains("script-src 'self'"), "{}", page.head);
}

#[test]
fn issues_are_discussed() {
    let Hosted { served: _served, owner, mut client, url, .. } = host();
    let (stranger, address) = (Author::new(9), format!("30617:{}:tool", owner.key()));
    let issue = stranger.event(
        1621,
        &[&["a", &address], &["subject", "It breaks"], &["t", "bug"]],
        &format!("Badly. {WRITES}"),
    );
    client.publish_well(&issue);
    client.publish_well(&stranger.event(0, &[], r#"{"name":"Sue <b>S</b>"}"#));
    let id = issue.id.to_string();
    let (own_key, stranger_key) = (owner.key(), stranger.key());
    let comment = owner.event(
        1111,
        &[&["E", &id], &["K", "1621"], &["P", &stranger_key], &["e", &id], &["k", "1621"]],
        "I *see*.",
    );
    client.publish_well(&comment);
    get(&format!("{url}/issues")).says(&["It breaks", "open", "bug", "Sue &lt;b&gt;S"]);
    get(&format!("{url}/issues/{id}")).says(&["Badly.", "I <em>see</em>.", "open"]);
    // Somebody else cannot close it; its author and maintainers can.
    client.publish_well(&Author::new(8).event(
        1632,
        &[&["e", &id], &["a", &address], &["p", &own_key]],
        "closed by a stranger",
    ));
    let page = get(&format!("{url}/issues/{id}")).says(&["open"]);
    assert!(!page.contains("closed by a stranger"), "{page}");
    client.publish_well(&owner.event(1631, &[&["e", &id], &["a", &address]], "done"));
    get(&format!("{url}/issues/{id}")).says(&["resolved", "done"]);
    assert!(!get(&format!("{url}/issues")).text().contains("It breaks"));
    get(&format!("{url}/issues?state=closed")).says(&["It breaks", "resolved"]);
}

#[test]
fn pull_requests_and_patches_are_shown_with_what_they_change() {
    let Hosted { served, owner, mut client, work, url, second, .. } = host();
    let (stranger, address) = (Author::new(9), format!("30617:{}:tool", owner.key()));
    let stranger_key = stranger.key();
    // A pull request with its commit.
    let tip = {
        work.git(&["checkout", "--quiet", "-b", "feature"]);
        std::fs::write(work.path().join("new.rs"), "fn more() {}\n").unwrap();
        work.git(&["add", "-A"]);
        work.commit("feature")
    };
    let pull =
        stranger.event(1618, &[&["a", &address], &["c", &tip], &["subject", "More"], &["clone", &url]], "Please.");
    client.publish_well(&pull);
    let id = pull.id.to_string();
    assert_eq!(get(&format!("{url}/pulls/{id}")).status, 404, "it waits for its commit");
    work.git(&["push", &url, &format!("{tip}:refs/nostr/{id}")]);
    get(&format!("{url}/pulls")).says(&["More", "open"]);
    get(&format!("{url}/pulls/{id}")).says(&[
        "Please.",
        &tip[..10],
        "new.rs",
        "2 files differ",
        "<span class=\"added\">+fn more() {}",
    ]);
    assert_eq!(get(&format!("{url}/issues/{id}")).status, 404, "a pull request is no issue");
    // A new version of it, by its author.
    let again = work.commit("feature, better");
    let tags: [&[&str]; 5] = [&["a", &address], &["E", &id], &["P", &stranger_key], &["c", &again], &["clone", &url]];
    let update = stranger.event(1619, &tags, "Better.");
    client.publish_well(&update);
    work.git(&["push", &url, &format!("{again}:refs/nostr/{}", update.id)]);
    get(&format!("{url}/pulls/{id}")).says(&["a new version", &again[..10], &tip[..10], "Better."]);
    // What came to the branch meanwhile is no part of it.
    work.git(&["checkout", "--quiet", "main"]);
    std::fs::write(work.path().join("elsewhere.txt"), "x").unwrap();
    work.git(&["add", "-A"]);
    let third = work.commit("three");
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &third)]));
    work.git(&["push", &url, "main"]);
    get(&format!("{url}/files")).says(&["elsewhere.txt"]);
    let page = get(&format!("{url}/pulls/{id}")).says(&["new.rs", "2 files differ"]);
    assert!(!page.contains("elsewhere.txt"), "{page}");
    // A patch carries what it changes.
    let patch =
        stranger.event(1617, &[&["a", &address], &["t", "root"]], "From 1\nSubject: [PATCH] small\n\n+<script>x\n");
    client.publish_well(&patch);
    let first = patch.id.to_string();
    let next = stranger.event(1617, &[&["a", &address], &["e", &first]], "Subject: [PATCH 2/2] next\n\n+more\n");
    client.publish_well(&next);
    get(&format!("{url}/pulls/{first}")).says(&["[PATCH] small", "+&lt;script&gt;x", "one more patch", "+more"]);
    assert!(!get(&format!("{url}/pulls")).text().contains("[PATCH 2/2]"), "a series is one entry");
    // Another repository does not show them.
    let other = common::git_work::host_repository(&mut client, &served.url, &owner, "other");
    assert!(other.ends_with("other"));
    let elsewhere = format!("{}/{}/other.git", served.url, owner.npub());
    assert_eq!(get(&format!("{elsewhere}/pulls/{id}")).status, 404);
    // Nor does it show commits of the first one.
    assert_eq!(get(&format!("{elsewhere}/commit/{second}")).status, 404);
}

#[test]
fn everything_is_on_one_page_of_a_list() {
    let Hosted { served, owner, mut client, work, url, first, second } = host();
    let (stranger, address) = (Author::new(9), format!("30617:{}:tool", owner.key()));
    // All of one second, as an import makes them.
    let at = owner.event(1, &[], "").created_at;
    let subjects: Vec<String> = (0..53).map(|number| format!("Issue {number:03}")).collect();
    for subject in &subjects {
        client.publish_well(&stranger.event_at(at, 1621, &[&["a", &address], &["subject", subject]], ""));
    }
    assert_eq!(on_all_pages(&served.url, &format!("{url}/issues"), &subjects), subjects);
    let mut commits = vec![first, second];
    for number in 0..51 {
        work.git(&["commit", "--quiet", "--allow-empty", "--message", &format!("more {number}")]);
        commits.push(work.git(&["rev-parse", "HEAD"]));
    }
    let tip = commits.last().unwrap().clone();
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &tip)]));
    work.git(&["push", &url, "main"]);
    let mut links: Vec<String> = commits.iter().map(|oid| format!("/commit/{oid}\"")).collect();
    links.sort();
    assert_eq!(on_all_pages(&served.url, &format!("{url}/commits"), &links), links);
    // An issue of somebody else's repository of the same name is not shown here.
    let other = Author::new(5);
    let elsewhere = common::git_work::host_repository(&mut client, &served.url, &other, "tool");
    let issue = stranger.event(1621, &[&["a", &elsewhere], &["subject", "Theirs"]], "");
    client.publish_well(&issue);
    let theirs = format!("{}/{}/tool.git", served.url, other.npub());
    get(&format!("{theirs}/issues/{}", issue.id)).says(&["Theirs"]);
    assert_eq!(get(&format!("{url}/issues/{}", issue.id)).status, 404);
}

#[test]
fn what_only_a_co_maintainer_has_is_shown_there_alone() {
    let served = Served::start(Home::ready(), &["--set", "git.enabled=1"]);
    let (owner, friend, stranger) = (Author::new(1), Author::new(2), Author::new(3));
    let (mut client, work) = (NostrClient::connect(&served.url), Work::new());
    let url = |author: &Author| format!("{}/{}/tool.git", served.url, author.npub());
    let first = work.commit("one");
    client.publish_well(&owner.announcement(&served.url, "tool", &[&friend.key()]));
    client.publish_well(&friend.announcement(&served.url, "tool", &[&owner.key()]));
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &first)]));
    work.git(&["push", &url(&owner), "main"]);
    get(&format!("{}/commit/{first}", url(&friend))).says(&["1 file differs"]);
    // Both have one object store; a pull request names one of them.
    let tip = work.commit("two");
    let address = format!("30617:{}:tool", owner.key());
    let pull = stranger.event(1618, &[&["a", &address], &["c", &tip], &["subject", "More"]], "");
    client.publish_well(&pull);
    work.git(&["push", &url(&owner), &format!("{tip}:refs/nostr/{}", pull.id)]);
    for page in
        ["commit/TIP", "commit/TIP/patch", "files?at=TIP", "raw?at=TIP&path=file", "archive?at=TIP", "commits?at=TIP"]
    {
        let page = page.replace("TIP", &tip);
        assert_eq!(get(&format!("{}/{page}", url(&owner))).status, 200, "{page}");
        assert_eq!(get(&format!("{}/{page}", url(&friend))).status, 404, "{page}");
    }
    // Nor is a path taken for the name of a commit.
    for path in ["x-gTIP^{tree}", "x-gTIP", "x-gTIP~1", "TIP"] {
        let path = path.replace("TIP", &tip[..8]).replace('^', "%5E").replace('{', "%7B").replace('}', "%7D");
        assert_eq!(get(&format!("{}/files?path={path}", url(&friend))).status, 404, "{path}");
    }
    // The merge itself is what a patch of it says, against its first parent.
    work.git(&["checkout", "--quiet", "-b", "side", &first]);
    std::fs::write(work.path().join("other"), "x").unwrap();
    work.git(&["add", "-A"]);
    work.git(&["commit", "--quiet", "-m", "side"]);
    work.git(&["merge", "--quiet", "--no-ff", "-m", "both", &tip]);
    let merge = work.git(&["rev-parse", "HEAD"]);
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &merge)]));
    work.git(&["push", &url(&owner), &format!("{merge}:refs/heads/main")]);
    let patch = get(&format!("{}/commit/{merge}/patch", url(&owner))).text();
    assert!(patch.starts_with(&format!("From {merge}")) && patch.contains("+two"), "{patch}");
    get(&format!("{}/commit/{merge}", url(&owner))).says(&["A merge", "1 file differs"]);
}

#[test]
fn what_is_not_hosted_or_waits_says_so() {
    let served = Served::start(Home::ready(), &["--set", "git.enabled=1"]);
    let (owner, mut client) = (Author::new(3), NostrClient::connect(&served.url));
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let missing = get(&url);
    assert_eq!(missing.status, 404);
    assert!(missing.header("content-type").starts_with("text/html") && missing.text().contains("not hosted here"));
    for odd in
        ["/npub1x/tool.git", "/npub1x/tool", &format!("/{}/.git", owner.npub()), &format!("/{}/x/y", owner.npub())]
    {
        assert_eq!(get(&format!("{}{odd}", served.url)).status, 404, "{odd}");
    }
    get(&format!("{}/repositories", served.url)).says(&["No repository has been pushed"]);
    client.publish_well(&owner.announcement(&served.url, "tool", &[]));
    let waiting = get(&url).says(&["waits for its git data"]);
    assert!(!waiting.contains("git clone"), "{waiting}");
    assert!(!get(&format!("{}/repositories", served.url)).text().contains("tool.git"));
    assert_eq!(get(&format!("{url}/files")).status, 404);
    // Programs still get git.
    let refs = get(&format!("{url}/info/refs?service=git-upload-pack"));
    assert_eq!(refs.header("content-type"), "application/x-git-upload-pack-advertisement");
    // Without git there are no such pages.
    let plain = Served::start(Home::ready(), &[]);
    assert_eq!(get(&format!("{}/repositories", plain.url)).status, 404);
    assert_eq!(get(&url.replace(&served.url, &plain.url)).status, 404);
}

#[test]
fn a_tree_that_never_ends_is_shown_in_part() {
    let Hosted { served: _served, owner, mut client, work, url, .. } = host();
    // Ten folders in ten folders, twelve deep: a million million files in a few objects.
    let blob = work.git(&["hash-object", "-w", "README.md"]).trim().to_owned();
    let mut tree = work.tree(&format!("100644 blob {blob}\tf\n"));
    for _ in 0..12 {
        let lines: String = (0..10).map(|number| format!("040000 tree {tree}\td{number}\n")).collect();
        tree = work.tree(&lines);
    }
    let bomb = work.git(&["commit-tree", "-m", "bomb", &tree]).trim().to_owned();
    let wide: String = (0..30_000).map(|number| format!("100644 blob {blob}\tfile-{number:05}\n")).collect();
    let wide = work.tree(&wide);
    let wide = work.git(&["commit-tree", "-m", "wide", &wide]).trim().to_owned();
    client.publish_well(&owner.state("tool", &[("refs/heads/main", &bomb), ("refs/heads/wide", &wide)]));
    work.git(&["push", "--force", &url, &format!("{bomb}:refs/heads/main"), &format!("{wide}:refs/heads/wide")]);
    get(&url).says(&["d0/", "d9/"]);
    let told = get(&format!("{url}/commit/{bomb}"));
    assert!(told.status == 422 && told.text().contains("too large to be shown"), "{}", told.text());
    get(&format!("{url}/files?at=wide")).says(&["more than the 2000 names"]);
    get(&format!("{url}/commit/{wide}")).says(&["files are not shown", "others."]);
    let (_folder, copy) = clone(&url, &["--no-checkout", "--branch", "wide"]);
    assert!(copy.join(".git").exists());
}
