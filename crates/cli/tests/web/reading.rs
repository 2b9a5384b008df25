//! A conversation that is longer than a page.

use super::browser::{Browser, Driver};
use super::common::served::Served;
use super::{DESKTOP, PHONE, invitation, join, operator, send, serve, shown, thread};
use std::collections::BTreeSet;
use std::ops::Range;

/// What a first visit may cost: page, style sheet, modules and icon together.
const FIRST_PAGE_BYTES_MAX: u64 = 100_000;

/// Says all these numbers in the conversation that is open, one after the other.
async fn say_all(browser: &Browser, numbers: Range<u32>) {
    let Range { start, end } = numbers;
    let script = format!(
        "const done = arguments[0];
         (async () => {{
           for (let number = {start}; number < {end}; number += 1) {{
             const body = new URLSearchParams({{ text: `number ${{number}}.` }});
             const say = () => fetch(location.pathname, {{ method: 'POST', headers: {{ 'x-part': '1' }}, body }});
             let answer = await say();
             // Nobody may speak too fast.
             while (answer.status === 429) answer = await say();
             if (!answer.ok) return done(answer.status);
           }}
           done(true);
         }})();"
    );
    assert_eq!(browser.run_later(&script).await, true);
}

const DOWN: &str = "const log = document.querySelector('#messages'); log.scrollTop = log.scrollHeight;";

/// The operator's browser, another one in which alice has a conversation open, and the address of that.
async fn two(served: &Served, driver: &Driver) -> (Browser, Browser, String) {
    let browser = driver.browser(DESKTOP.0, DESKTOP.1).await;
    operator(served, &browser).await;
    let link = invitation(served, &browser).await;
    let other = driver.browser(PHONE.0, PHONE.1).await;
    join(&other, &link, "alice").await;
    thread(&other, served, "Welcome").await;
    let talk = other.url().await.split('#').next().unwrap().to_owned();
    (browser, other, talk)
}

#[tokio::test]
async fn a_long_conversation_is_read_in_both_directions() {
    let (served, driver) = (serve(), Driver::start());
    let (browser, other, talk) = two(&served, &driver).await;
    say_all(&other, 0..130).await;

    // The latest are shown, and older ones as one scrolls up, each once and in order.
    browser.goto(&talk).await;
    browser.until(&shown("number 129.")).await;
    browser.until("document.querySelectorAll('.msg').length === 50").await;
    for more in [100, 130] {
        browser.run("document.querySelector('#messages').scrollTop = 0").await;
        browser.until(&format!("document.querySelectorAll('.msg').length >= {more}")).await;
    }
    browser.run("document.querySelector('#messages').scrollTop = 0").await;
    browser.until(&shown("number 0.")).await;
    let numbers = "[...document.querySelectorAll('.msg .text')].map(m => /^number (\\d+)/.exec(m.innerText)?.[1]).filter(Boolean)";
    browser
        .until(&format!("{numbers}.length === 130 && {numbers}.every((number, place) => Number(number) === place)"))
        .await;

    // From the middle one goes on to the end, where what is new comes by itself.
    let middle = browser.run("return [...document.querySelectorAll('.msg')][20].id.slice(2)").await;
    browser.goto(&format!("{talk}?around={}", middle.as_str().unwrap())).await;
    browser.until("document.querySelector('#newer') !== null").await;
    for _ in 0..4 {
        browser.run(DOWN).await;
        browser
            .until(
                "document.querySelector('#newer') === null || document.querySelector('#messages').scrollTop + \
            document.querySelector('#messages').clientHeight < document.querySelector('#messages').scrollHeight - 200",
            )
            .await;
    }
    browser.run(DOWN).await;
    browser.until(&shown("number 129.")).await;
    browser.until("document.querySelector('#newer') === null").await;
    say_all(&other, 130..131).await;
    browser.until(&shown("number 130.")).await;

    browser.close().await;
    other.close().await;
}

#[tokio::test]
async fn what_came_while_one_was_away_is_behind_a_line() {
    let (served, driver) = (serve(), Driver::start());
    let (browser, other, talk) = two(&served, &driver).await;
    say_all(&other, 130..131).await;
    browser.goto(&talk).await;
    browser.until(&shown("number 130.")).await;
    browser.run(DOWN).await;
    let has_read =
        "`m-${document.querySelector('#messages').dataset.read}` === [...document.querySelectorAll('.msg')].at(-1).id";
    browser.until(has_read).await;
    browser.goto(&format!("{}/s/home", served.url)).await;
    browser.until("document.querySelector('#threads .unread') === null").await;
    browser.goto(&format!("{}/me", served.url)).await;
    say_all(&other, 200..202).await;
    browser.goto(&format!("{}/s/home", served.url)).await;
    browser.until("document.querySelector('#threads .unread')?.innerText.startsWith('2')").await;
    browser.leave("a.thread").await;
    browser.until("document.querySelector('.new')?.nextElementSibling?.innerText.includes('number 200.')").await;
    browser.picture("new").await;

    // If that is too much for one page, a link leads back.
    browser.until(has_read).await;
    browser.goto(&format!("{}/me", served.url)).await;
    say_all(&other, 300..360).await;
    browser.goto(&talk).await;
    browser.leave("p.new a").await;
    browser.until(&shown("number 201.")).await;
    browser.close().await;
    other.close().await;
}

#[tokio::test]
async fn what_was_typed_or_not_sent_survives_the_line_the_page_and_the_session() {
    let (served, driver) = (serve(), Driver::start());
    let (browser, other, talk) = two(&served, &driver).await;
    // Without a line it is kept, and sent once when there is one again.
    other.be_offline(true).await;
    send(&other, "said without a line").await;
    other.reads("Not sent: the node did not answer").await;
    other.fill("#text", "half a thought").await;
    other.be_offline(false).await;
    other.goto(&format!("{}/s/home", served.url)).await;
    other.goto(&talk).await;
    other.until(&shown("said without a line")).await;
    other.until("document.querySelector('#text').value === 'half a thought'").await;
    browser.goto(&talk).await;
    browser.until(&shown("said without a line")).await;
    assert_eq!(browser.run("return document.body.innerText.split('said without a line').length - 1").await, 1);

    // Also without leaving the page.
    other.be_offline(true).await;
    other.fill("#text", "again without a line").await;
    other.click("#compose button:not([type=button])").await;
    other.reads("Not sent: the node did not answer").await;
    other.be_offline(false).await;
    other.until(&shown("again without a line")).await;
    other.fill("#text", "half a thought").await;

    // Whoever is signed out elsewhere is told so, and finds it again.
    browser.goto(&format!("{}/in", served.url)).await;
    browser.fill("input[name=user]", "alice").await;
    browser.fill("input[name=password]", "correct horse battery").await;
    browser.leave("main form button").await;
    browser.goto(&format!("{}/me", served.url)).await;
    browser.leave("button[name=others]").await;
    other.reads("Your session has ended").await;
    other.fits().await;
    other.picture("out-phone").await;
    other.click("#compose button:not([type=button])").await;
    other.reads("because your session has ended. The text stays here").await;
    other.leave("#signed-out a").await;
    other.fill("input[name=user]", "alice").await;
    other.fill("input[name=password]", "correct horse battery").await;
    other.leave("main form button").await;
    other.until("document.querySelector('#text')?.value === 'half a thought'").await;

    // The form of a page says something once, however often it is sent.
    let form = "const done = arguments[0], form = document.querySelector('#compose');
        form.elements.text.value = 'once and no more';
        const body = () => new URLSearchParams(new FormData(form));
        (async () => {
          await fetch(location.pathname, { method: 'POST', body: body() });
          await fetch(location.pathname, { method: 'POST', body: body() });
          done(true);
        })();";
    other.run_later(form).await;
    browser.goto(&talk).await;
    browser.until(&shown("once and no more")).await;
    assert_eq!(browser.run("return document.body.innerText.split('once and no more').length - 1").await, 1);
    browser.close().await;
    other.close().await;
}

/// What the page fetched from the folder of assets, and how many bytes that is together with the page itself.
const FETCHED: &str = "
    const files = performance.getEntriesByType('resource').filter((file) => file.name.includes('/assets/'));
    const all = [...performance.getEntriesByType('navigation'), ...files];
    const bytes = all.reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0);
    return { names: files.map((file) => file.name.split('/').at(-1)), bytes };";

#[tokio::test]
async fn a_page_fetches_each_of_its_modules_once_and_no_other() {
    let (mut served, driver) = (serve(), Driver::start());
    let (browser, other, talk) = two(&served, &driver).await;
    say_all(&other, 0..60).await;
    browser.goto(&talk).await;
    browser.until(&shown("number 59.")).await;
    let fetched = browser.run(FETCHED).await;
    let mut names: Vec<&str> = fetched["names"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    names.sort_unstable();
    let once: BTreeSet<&str> = names.iter().copied().collect();
    assert!(names.iter().eq(&once), "something is fetched twice: {names:?}");
    assert!(once.contains("conversation.js") && once.contains("style.css"), "{names:?}");
    assert!(!once.contains("passkeys.js"), "{names:?}");
    let bytes = fetched["bytes"].as_u64().unwrap();
    assert!((30_000..FIRST_PAGE_BYTES_MAX).contains(&bytes), "{bytes} bytes");

    // Where there can be passkeys, and nowhere else, their module is fetched.
    let has_fetched = "performance.getEntriesByType('resource').some((file) => file.name.endsWith('/passkeys.js'))";
    browser.goto(&format!("{}/in", served.url)).await;
    browser.until("document.readyState === 'complete'").await;
    assert_eq!(browser.run(&format!("return {has_fetched}")).await, false);
    assert_eq!(browser.run("return document.querySelector('form.passkey').hidden").await, true);
    served.url = served.url.replace("127.0.0.1", "localhost");
    browser.goto(&format!("{}/in", served.url)).await;
    assert_eq!(browser.run("return document.querySelector('form.passkey').hidden").await, false);
    browser.until(has_fetched).await;
    browser.close().await;
    other.close().await;
}
