//! The web page in a real Chromium: coming in, talking, seeing what waits, looking inside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod browser;
#[path = "../common/mod.rs"]
mod common;
mod files;
mod reading;
mod repositories;
mod tricks;

use browser::{Browser, Driver};
use common::Home;
use common::served::Served;

const DESKTOP: (u32, u32) = (1200, 900);
const PHONE: (u32, u32) = (390, 844);

/// What is told to a text field to see whether it does anything.
const TRICK: &str = "\"'><img src=x onerror=\"document.title='x'\"><script>document.title='x'</script>";

fn serve() -> Served {
    Served::start(Home::new(), &[])
}

/// Signs in as the operator, by a new link.
async fn operator(served: &Served, browser: &Browser) {
    let link = served.home.json(&["link"])["link"].as_str().unwrap().to_owned();
    let path = link.split_once("/in/").unwrap().1;
    browser.goto(&format!("{}/in/{path}", served.url)).await;
    browser.leave("main form button").await;
    browser.see("#threads").await;
}

/// An invitation link, made by the operator in that browser.
async fn invitation(served: &Served, browser: &Browser) -> String {
    browser.goto(&format!("{}/s/home/people", served.url)).await;
    browser.leave("#invite button").await;
    let link = browser.see("input.link").await.prop("value").await.unwrap().unwrap();
    assert!(link.starts_with(&format!("{}/join/", served.url)), "{link}");
    link
}

/// Joins by a link.
async fn join(browser: &Browser, link: &str, user: &str) {
    browser.goto(link).await;
    browser.fill("input[name=user]", user).await;
    browser.fill("input[name=password]", "correct horse battery").await;
    browser.leave("main form button").await;
    browser.see("#threads").await;
}

/// Opens a thread by its title.
async fn thread(browser: &Browser, served: &Served, title: &str) {
    browser.goto(&format!("{}/s/home", served.url)).await;
    let script = format!("[...document.querySelectorAll('a.thread')].find(a => a.innerText.includes('{title}'))");
    browser.until(&format!("{script} !== undefined")).await;
    browser.run(&format!("{script}.click()")).await;
    browser.see("#messages").await;
}

async fn send(browser: &Browser, text: &str) {
    browser.fill("#text", text).await;
    browser.click("#compose button:not([type=button])").await;
}

fn shown(text: &str) -> String {
    format!("[...document.querySelectorAll('.msg:not(.sending) .text')].some(m => m.innerText.includes({text:?}))")
}

#[tokio::test]
async fn people_are_invited_and_talk_live() {
    let (served, driver) = (serve(), Driver::start());
    let first = driver.browser(DESKTOP.0, DESKTOP.1).await;
    first.goto(&served.url).await;
    first.reads("Sign in").await;
    first.is_accessible().await;
    first.picture("sign-in").await;
    operator(&served, &first).await;
    first.reads("Welcome").await;
    first.is_accessible().await;
    first.picture("threads").await;
    let link = invitation(&served, &first).await;
    first.is_accessible().await;

    let second = driver.browser(PHONE.0, PHONE.1).await;
    second.goto(&link).await;
    second.is_accessible().await;
    second.picture("join-phone").await;
    join(&second, &link, "alice").await;
    second.goto(&link).await;
    second.reads("used up").await;
    thread(&second, &served, "Welcome").await;
    thread(&first, &served, "Welcome").await;

    send(&second, "hello **from the phone**, @operator").await;
    first.until(&shown("from the phone")).await;
    first.until("document.querySelector('.at.me') !== null").await;
    send(&first, "and back").await;
    second.until(&shown("and back")).await;
    second.is_accessible().await;
    second.picture("talk-phone").await;
    first.picture("talk").await;

    // A reaction, live.
    first.run("[...document.querySelectorAll('.msg')].at(-2).querySelector('.tools button').click()").await;
    second.until("document.querySelector('.chip[data-reaction]') !== null").await;

    // What people write does nothing.
    send(&second, TRICK).await;
    first.until(&shown("onerror")).await;
    assert_ne!(first.run("return document.title").await, "x");
    assert_eq!(first.run("return document.querySelectorAll('.msg img').length").await, 0);
    first.is_accessible().await;

    // Who one is, and what one is called, is shown as text too.
    second.goto(&format!("{}/me", served.url)).await;
    second.fill("input[name=display]", TRICK).await;
    second.leave("form[action='/me/profile'] button").await;
    second.see("input[name=display]").await;
    for path in ["/me", "/s/home", "/s/home/people", "/s/home/mentions", "/s/home/search?q=%3Cscript%3E"] {
        second.goto(&format!("{}{path}", served.url)).await;
        second.see("main h1").await;
        second.is_accessible().await;
        assert_ne!(second.run("return document.title").await, "x", "{path}");
        second.fits().await;
    }
    thread(&first, &served, "Welcome").await;
    first.until("document.querySelector('#messages').innerText.includes('<img src=x')").await;
    first.goto(&format!("{}/s/home/mentions", served.url)).await;
    first.reads("from the phone").await;
    first.goto(&format!("{}/s/home/reports", served.url)).await;
    first.reads("There are no reports").await;
    first.close().await;
    second.close().await;
}

#[tokio::test]
async fn messages_are_edited_compared_found_and_deleted() {
    let (served, driver) = (serve(), Driver::start());
    let browser = driver.browser(DESKTOP.0, DESKTOP.1).await;
    operator(&served, &browser).await;
    browser.run("document.querySelector('details.card').open = true").await;
    browser.fill("details input[name=title]", TRICK).await;
    browser.fill("details textarea", "the quick brown fox").await;
    browser.leave("details.card button").await;
    browser.until(&shown("quick brown")).await;
    assert_ne!(browser.run("return document.title").await, "x");
    browser.leave(".msg .more").await;
    browser.run("document.querySelectorAll('.acts details')[0].open = true").await;
    browser.fill(".acts details textarea", "the slow brown fox").await;
    browser.leave(".acts details button").await;
    browser.see(".version").await;
    assert_eq!(browser.see("del").await.text().await.unwrap(), "quick");
    assert_eq!(browser.see("ins").await.text().await.unwrap(), "slow");
    browser.is_accessible().await;
    browser.picture("versions").await;

    // The index follows a moment later.
    let mut looks = 0;
    while browser.run("return document.querySelector('.jump a') === null").await == true {
        looks += 1;
        assert!(looks < 200, "it is never found");
        browser.fill("input[name=q]", "slow fox").await;
        browser.submit(".find").await;
        browser.see("form.card[role=search]").await;
    }
    browser.is_accessible().await;
    browser.leave(".jump a").await;
    browser.until("document.querySelector('.msg:target') !== null").await;

    browser.leave(".msg .more").await;
    browser.leave(".acts form[action$=pin] button").await;
    browser.leave("main p a").await;
    browser.see(".pins a").await;
    browser.leave(".msg .more").await;
    browser.run("document.querySelectorAll('.acts details').forEach((one) => { one.open = true; })").await;
    browser.leave(".acts form[action$=delete] button").await;
    browser.reads("This message was deleted").await;
    browser.close().await;
}

#[tokio::test]
async fn a_password_signs_in_and_sessions_are_ended_elsewhere() {
    let (served, driver) = (serve(), Driver::start());
    let first = driver.browser(DESKTOP.0, DESKTOP.1).await;
    operator(&served, &first).await;
    let link = invitation(&served, &first).await;
    let second = driver.browser(PHONE.0, PHONE.1).await;
    join(&second, &link, "bob").await;
    first.goto(&format!("{}/me", served.url)).await;
    first.is_accessible().await;
    first.leave("form[action='/out'] button").await;
    first.reads("Sign in").await;
    for (password, says) in [("wrong wrong wrong", "Wrong name or password"), ("correct horse battery", "Threads")] {
        first.goto(&format!("{}/in", served.url)).await;
        first.fill("input[name=user]", "bob").await;
        first.fill("input[name=password]", password).await;
        first.leave("main form button").await;
        first.reads(says).await;
    }
    // A member sees neither what waits nor what is inside.
    first.goto(&format!("{}/anteroom", served.url)).await;
    first.reads("Not allowed").await;
    first.goto(&format!("{}/me", served.url)).await;
    first.leave("button[name=others]").await;
    first.see("form[action='/me/sessions']").await;
    second.goto(&format!("{}/s/home", served.url)).await;
    second.reads("Sign in").await;
    first.close().await;
    second.close().await;
}

#[tokio::test]
async fn a_passkey_joins_signs_in_and_is_forgotten() {
    let (mut served, driver) = (serve(), Driver::start());
    let operating = driver.browser(DESKTOP.0, DESKTOP.1).await;
    operator(&served, &operating).await;
    operating.goto(&format!("{}/me", served.url)).await;
    operating.reads("needs JavaScript, a recent browser, and a host name").await;
    served.url = served.url.replace("127.0.0.1", "localhost");
    operator(&served, &operating).await;
    let link = invitation(&served, &operating).await;

    // Joining without a password.
    let browser = driver.browser(PHONE.0, PHONE.1).await;
    browser.have_passkeys().await;
    browser.goto(&link).await;
    browser.fill("input[name=user]", "operator").await;
    browser.click("form.passkey button").await;
    browser.reads("is taken").await;
    browser.fill("input[name=user]", "carol").await;
    browser.is_accessible().await;
    browser.leave("form.passkey button").await;
    browser.see("#threads").await;
    browser.goto(&format!("{}/me", served.url)).await;
    browser.reads("for localhost").await;
    browser.is_accessible().await;
    browser.picture("passkeys-phone").await;
    browser.leave("form[action='/me/passkey/forget'] button").await;
    browser.reads("the only way into the account").await;

    // Coming back, without a name.
    browser.goto(&format!("{}/me", served.url)).await;
    browser.leave("form[action='/out'] button").await;
    browser.leave("form.passkey button").await;
    browser.see("#threads").await;
    assert_eq!(browser.run("return document.body.dataset.user").await, "carol");

    // A password as well, so that the passkey can go, and does not prove anybody any more.
    browser.goto(&format!("{}/me", served.url)).await;
    browser.fill("input[name=after]", "correct horse battery").await;
    browser.leave("form[action='/me/password'] button").await;
    browser.leave("form[action='/me/passkey/forget'] button").await;
    browser.reads("You have no passkeys").await;
    browser.leave("form[action='/out'] button").await;
    browser.click("form.passkey button").await;
    browser.reads("does not prove anybody here").await;

    // Another one is added with the password only.
    browser.fill("input[name=user]", "carol").await;
    browser.fill("input[name=password]", "correct horse battery").await;
    browser.leave("main form button").await;
    for (password, says) in
        [("wrong wrong wrong", "current password is wrong"), ("correct horse battery", "for localhost")]
    {
        browser.goto(&format!("{}/me", served.url)).await;
        browser.fill("form.passkey input[name=before]", password).await;
        browser.click("form.passkey button").await;
        browser.reads(says).await;
    }
    operating.close().await;
    browser.close().await;
}

#[tokio::test]
async fn what_waits_is_seen_and_let_in_and_the_inside_is_shown() {
    let home = Home::new();
    let mut demo = home.demo(&["demo", "--pause", "2", "--listen", "127.0.0.1:0"]);
    let driver = Driver::start();
    let browser = driver.browser(DESKTOP.0, DESKTOP.1).await;
    browser.goto(&demo.link()).await;
    browser.leave("main form button").await;
    browser.see("#threads").await;
    let url = browser.url().await.replace("/s/home", "");
    browser.goto(&format!("{url}/anteroom")).await;
    browser.until("/[1-4] events? waits?/.test(document.body.innerText)").await;
    browser.until("document.querySelector('#waiting li') !== null").await;
    browser.is_accessible().await;
    browser.until("document.body.innerText.includes('4 events wait')").await;
    browser
        .until("/the second node, .* ago: no answer \\(the connection is down\\)/.test(document.body.innerText)")
        .await;
    browser.reads("reaction ").await;
    browser.picture("waiting").await;
    let first = browser.run("return document.querySelector('#waiting li a').href").await;
    browser.until("document.body.innerText.includes('0 events wait')").await;
    browser.goto(first.as_str().unwrap()).await;
    browser.reads("Applied").await;
    browser.is_accessible().await;
    browser.picture("story").await;
    browser.goto(&format!("{url}/s/home")).await;
    browser.reads("Messages from the second node").await;
    for (path, says, name) in [
        ("/inside", "Events by stage", "status"),
        ("/inside/keys?prefix=thread%3A", "Explorer", "explorer"),
        ("/inside/jobs", "Jobs", "jobs"),
        ("/inside/files", "Files", "files-status"),
        ("/inside/audit", "found space", "audit"),
        ("/inside/settings", "Retention", "settings"),
    ] {
        browser.goto(&format!("{url}{path}")).await;
        browser.reads(says).await;
        browser.is_accessible().await;
        browser.picture(name).await;
    }
    browser.goto(&format!("{url}/inside/keys?prefix=thread%3A")).await;
    browser.leave(".keys a").await;
    browser.see("main pre").await;
    browser.goto(first.as_str().unwrap().replace("/anteroom/", "/inside/event/").as_str()).await;
    browser.see("svg.chain circle.here").await;
    browser.is_accessible().await;
    browser.picture("event").await;
    browser.close().await;
}
