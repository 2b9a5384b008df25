//! A conversation that is longer than a page.

use super::browser::{Browser, Driver};
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
             // Nobody may speak too fast.
             while (!(await fetch(location.pathname, {{ method: 'POST', headers: {{ 'x-part': '1' }}, body }})).ok);
           }}
           done(true);
         }})();"
    );
    browser.run_later(&script).await;
}

#[tokio::test]
async fn a_long_conversation_is_read_in_both_directions_from_where_it_was_left() {
    let (served, driver) = (serve(), Driver::start());
    let browser = driver.browser(DESKTOP.0, DESKTOP.1).await;
    operator(&served, &browser).await;
    let link = invitation(&served, &browser).await;
    let other = driver.browser(PHONE.0, PHONE.1).await;
    join(&other, &link, "alice").await;
    thread(&other, &served, "Welcome").await;
    let talk = other.url().await.split('#').next().unwrap().to_owned();
    say_all(&other, 0..130).await;

    // The latest are shown, and older ones as one scrolls up, each once and in order.
    browser.goto(&talk).await;
    browser.until(&shown("number 129.")).await;
    browser.until("document.querySelectorAll('.msg').length === 50").await;
    for _ in 0..2 {
        browser.run("document.querySelector('#messages').scrollTop = 0").await;
        browser
            .until(
                "document.querySelectorAll('.msg').length % 50 !== 0 || document.querySelectorAll('.msg').length > 50",
            )
            .await;
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
    let down = "const log = document.querySelector('#messages'); log.scrollTop = log.scrollHeight;";
    for _ in 0..4 {
        browser.run(down).await;
        browser
            .until(
                "document.querySelector('#newer') === null || document.querySelector('#messages').scrollTop + \
            document.querySelector('#messages').clientHeight < document.querySelector('#messages').scrollHeight - 200",
            )
            .await;
    }
    browser.run(down).await;
    browser.until(&shown("number 129.")).await;

    // What came while one was away is behind a line.
    browser.goto(&talk).await;
    browser.until(&shown("number 129.")).await;
    browser.run(down).await;
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
    browser.close().await;
    other.close().await;
}
