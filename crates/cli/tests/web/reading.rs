//! A conversation that is longer than a page.

use super::browser::{Browser, Driver};
use super::common::served::Served;
use super::{DESKTOP, PHONE, invitation, join, operator, serve, shown, thread};
use std::ops::Range;

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
