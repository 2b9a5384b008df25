//! Script in every text field, and every page in the dark at the width of a phone.

use super::browser::{Browser, Driver};
use super::{PHONE, TRICK, invitation, join, operator, send, serve, shown, thread};

/// Fills every text field of every form of a page, sends each form as a browser without script does, and looks whether
/// anything came of it; then the same with the hidden fields too. Says how many fields there were.
async fn trick(browser: &Browser, page: &str) -> u64 {
    const TEXTS: &str = "input:not([type]), input[type=text], input[type=search], textarea";
    const ALL: &str = "input:not([type]), input[type=text], input[type=search], textarea, input[type=hidden]";
    let mut tricked = 0;
    browser.goto(page).await;
    let forms = browser.run("return document.forms.length").await.as_u64().unwrap();
    for (form, fields) in (0..forms).flat_map(|form| [(form, TEXTS), (form, ALL)]) {
        browser.goto(page).await;
        browser.run("document.documentElement.dataset.left = '1'").await;
        let script = format!(
            "const form = document.forms[{form}], found = form ? [...form.querySelectorAll('{fields}')] : [];
             for (const field of found) field.value = {};
             if (found.length) HTMLFormElement.prototype.submit.call(form);
             return found.length;",
            serde_json::json!(TRICK)
        );
        let found = browser.run(&script).await.as_u64().unwrap();
        tricked += found;
        if found > 0 {
            let left = "document.documentElement.dataset.left === undefined && document.readyState === 'complete'";
            browser.until(left).await;
            is_unhurt(browser).await;
        }
    }
    tricked
}

/// Every menu of a page opens where it can be seen.
async fn menus_fit(browser: &Browser) {
    let script = "return [...document.querySelectorAll('details.menu')].filter((menu) => {
        menu.open = true;
        const { left, right, top, bottom } = menu.querySelector('.card').getBoundingClientRect();
        menu.open = false;
        return left < 0 || top < 0 || right > innerWidth || bottom > innerHeight;
      }).length";
    assert_eq!(browser.run(script).await, 0, "a menu of {} opens out of sight", browser.url().await);
}

async fn is_unhurt(browser: &Browser) {
    let hurt = "return document.title === 'x' || document.querySelector('img[src=x], main script') !== null";
    assert_eq!(browser.run(hurt).await, false, "{} runs what was typed", browser.url().await);
}

#[tokio::test]
async fn script_in_every_text_field_is_text_and_every_page_fits_a_phone_in_the_dark() {
    let (served, driver) = (serve(), Driver::start());
    let browser = driver.browser(PHONE.0, PHONE.1).await;
    browser.be_dark().await;
    let at = |path: &str| format!("{}{path}", served.url);
    let mut fields = trick(&browser, &at("/in")).await;
    operator(&served, &browser).await;
    let mia = driver.browser(PHONE.0, PHONE.1).await;
    join(&mia, &invitation(&served, &browser).await, "mia").await;
    thread(&mia, &served, "Welcome").await;
    send(&mia, "something to report").await;
    mia.until(&shown("something to report")).await;
    mia.close().await;
    let join = invitation(&served, &browser).await;
    thread(&browser, &served, "Welcome").await;
    browser.until(&shown("something to report")).await;
    let talk = browser.url().await;
    let message = browser.run("return [...document.querySelectorAll('.msg .more')].at(-1).href").await;
    let message = message.as_str().unwrap().to_owned();
    let event = message.replace("/s/home/m/", "/inside/event/");
    let story = message.replace("/s/home/m/", "/anteroom/");
    let pages = [
        "/me",
        "/s/home",
        "/s/home/people",
        "/s/home/mentions",
        "/s/home/reports",
        "/s/home/search?q=report",
        "/anteroom",
        "/inside",
        "/inside/keys",
        "/inside/keys?prefix=thread%3A",
        "/inside/jobs",
        "/inside/files",
        "/inside/audit",
        "/inside/settings",
    ];
    let pages: Vec<String> = pages.map(at).into_iter().chain([talk, message, event, story, join]).collect();
    for page in &pages {
        fields += trick(&browser, page).await;
    }
    assert!(fields > 50, "only {fields} fields");
    for shown_on in ["/me", "/s/home", "/s/home/people", "/s/home/reports"] {
        browser.goto(&at(shown_on)).await;
        let html = browser.run("return document.querySelector('main').innerHTML").await;
        assert!(html.as_str().unwrap().contains("img src=x"), "nothing of it was kept on {shown_on}");
    }
    // Whatever was kept of it is shown as text, wherever it is shown.
    for page in &pages {
        browser.goto(page).await;
        browser.see("main h1").await;
        is_unhurt(&browser).await;
        browser.fits().await;
        menus_fit(&browser).await;
        browser.is_accessible().await;
        let name = page.trim_start_matches(&served.url).split(['?', '#']).next().unwrap().trim_matches('/');
        let words: Vec<&str> = name.split('/').filter(|word| word.len() < 20).collect();
        browser.picture(&format!("dark-{}", words.join("-"))).await;
    }
    browser.close().await;
}
