//! The pages of a git repository in the browser: for everybody, on a phone, in the dark, and with script in every text that
//! strangers write.

use super::browser::Driver;
use super::common::Home;
use super::common::git_work::Work;
use super::common::nostr_client::{Author, NostrClient};
use super::common::served::Served;
use super::{DESKTOP, PHONE, TRICK, operator};

/// A repository in which every text is a trick: its address, a commit and an issue.
async fn host_tricks(served: &Served) -> (String, String, String) {
    let (owner, stranger, work) = (Author::new(1), Author::new(2), Work::new());
    let url = format!("{}/{}/tool.git", served.url, owner.npub());
    let write = |name: &str, text: &str| std::fs::write(work.path().join(name), text).unwrap();
    write(
        "README.md",
        &format!(
            "# Tool\n\n{TRICK}\n\n![x](javascript:alert(1)) [y](javascript:alert(1))\n\n| a | b |\n| - | - |\n| c | d |\n"
        ),
    );
    write("page.html", TRICK);
    write("main.rs", &format!("// {TRICK}\nfn main() {{ println!(\"{}\"); }}\n", "x".repeat(300)));
    let odd = "<img src=x onerror=document.title='x'>";
    write(odd, TRICK);
    work.git(&["add", "-A"]);
    let commit = work.commit(TRICK);
    // What the client does waits for the network.
    let (announced, state, issue) = {
        let relay = served.url.replacen("http", "ws", 1);
        let tags: [&[&str]; 6] = [
            &["d", "tool"],
            &["name", TRICK],
            &["description", TRICK],
            &["clone", &url],
            &["relays", &relay],
            &["t", TRICK],
        ];
        let announced = owner.event(30617, &tags, "");
        let state = owner.state("tool", &[("refs/heads/main", &commit)]);
        let address = format!("30617:{}:tool", owner.key());
        (announced, state, stranger.event(1621, &[&["a", &address], &["subject", TRICK], &["t", TRICK]], TRICK))
    };
    let issue_id = issue.id.to_string();
    let profile = stranger.event(0, &[], &serde_json::json!({ "name": TRICK }).to_string());
    let (address, push) = (served.url.clone(), url.clone());
    tokio::task::spawn_blocking(move || {
        let mut client = NostrClient::connect(&address);
        client.publish_well(&announced);
        client.publish_well(&state);
        work.git(&["push", &push, "main"]);
        client.publish_well(&issue);
        client.publish_well(&profile);
    })
    .await
    .unwrap();
    (url, commit, issue_id)
}

#[tokio::test]
async fn repositories_are_read_by_everybody_and_nothing_in_them_runs() {
    let served = Served::start(Home::new(), &["--set", "git.enabled=1"]);
    let (url, commit, issue_id) = host_tricks(&served).await;
    let driver = Driver::start();
    let pages = [
        format!("{}/repositories", served.url),
        url.clone(),
        format!("{url}/files?path=main.rs"),
        format!("{url}/files?path=%3Cimg%20src%3Dx%20onerror%3Ddocument.title%3D%27x%27%3E"),
        format!("{url}/commits"),
        format!("{url}/commit/{commit}"),
        format!("{url}/branches"),
        format!("{url}/issues"),
        format!("{url}/issues/{issue_id}"),
        format!("{url}/pulls"),
        format!("{url}/raw?path=page.html"),
    ];
    for (size, is_dark) in [(DESKTOP, false), (PHONE, true)] {
        let browser = driver.browser(size.0, size.1).await;
        if is_dark {
            browser.be_dark().await;
        }
        for page in &pages {
            browser.goto(page).await;
            assert_ne!(browser.run("return document.title").await, serde_json::json!("x"), "{page}");
            assert_eq!(
                browser.run("return document.querySelectorAll('[onerror], main script').length").await,
                0,
                "{page}"
            );
            if !page.contains("/raw?") {
                browser.fits().await;
                browser.is_accessible().await;
            }
        }
        browser.close().await;
    }
    // Whoever is signed in finds them in the navigation.
    let browser = driver.browser(DESKTOP.0, DESKTOP.1).await;
    operator(&served, &browser).await;
    browser.leave("nav a[href='/repositories']").await;
    browser.reads("Repositories").await;
    browser.close().await;
}
