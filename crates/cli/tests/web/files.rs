//! Files in the browser: chosen, dropped, gone on with after a break, shown large, shared and tried again.

use super::browser::{Browser, Driver};
use super::common::Home;
use super::common::browsing::get;
use super::common::served::Served;
use super::{DESKTOP, PHONE, operator, thread};

/// A script that makes a picture of 1,600 × 900 pixels and gives it to the page as files are given.
fn give_picture(how: &str) -> String {
    format!(
        "const canvas = Object.assign(document.createElement('canvas'), {{ width: 1600, height: 900 }});
         const paint = canvas.getContext('2d'); paint.fillStyle = 'teal'; paint.fillRect(0, 0, 900, 900);
         canvas.toBlob((blob) => {{
           const data = new DataTransfer();
           data.items.add(new File([blob], 'boat.png', {{ type: 'image/png' }}));
           {how}
         }}, 'image/png');"
    )
}

/// Loads the page again until it shows what somebody works on beside it.
async fn reload_until(browser: &Browser, what: &str) {
    for _ in 0..300 {
        if browser.run(&format!("return !!({what})")).await == true {
            return;
        }
        let here = browser.run("return location.href.split('#')[0]").await;
        browser.goto(here.as_str().unwrap()).await;
    }
    panic!("never {what}");
}

#[tokio::test]
async fn pictures_are_uploaded_shown_shared_and_put_away() {
    let served = Served::start(Home::new(), &[]);
    let driver = Driver::start();
    let browser = driver.browser(DESKTOP.0, DESKTOP.1).await;
    operator(&served, &browser).await;
    thread(&browser, &served, "Welcome").await;
    // Dropped onto a conversation it is sent with a message, in its place and with its room kept.
    let drop =
        "document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));";
    browser.run(&give_picture(drop)).await;
    browser.until("document.querySelector('article.msg a.file')").await;
    browser.until("!document.querySelector('.upload')").await;
    reload_until(&browser, "document.querySelector('a.file[data-full] img[width]')?.naturalWidth > 0").await;
    assert_eq!(browser.run("return document.querySelector('a.file img').getAttribute('width')").await, "1024");
    // It is shown large over the page, and closed with the keyboard.
    browser.click("a.file").await;
    browser.until("document.querySelector('dialog.lightbox[open] img')?.naturalWidth == 1600").await;
    browser.is_accessible().await;
    browser.run("document.querySelector('dialog.lightbox').close()").await;
    browser.until("!document.querySelector('dialog')").await;
    // The gallery has it, and takes more.
    browser.goto(&format!("{}/s/home/files", served.url)).await;
    browser.until("document.querySelector('.gallery img')?.naturalWidth > 0").await;
    let choose = "const input = document.querySelector('#upload input'); input.files = data.files;
                  input.dispatchEvent(new Event('change'));";
    let name = "\\\"><img src=x onerror=document.title=1>";
    browser.run(&give_picture(choose).replace("'boat.png'", &format!("\"{name}\""))).await;
    browser.until("document.querySelector('.upload a')").await;
    browser.is_accessible().await;
    browser.picture("files").await;
    browser.fits().await;
    // Its page says everything, makes a link that works without an account, and ends it.
    browser.run("location.href = document.querySelector('.upload a').href").await;
    browser.until("document.querySelector('dl.facts')").await;
    assert_eq!(browser.run("return document.title.includes('<')").await, true, "a name is text");
    browser.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })").await;
    browser.is_accessible().await;
    browser.picture("file").await;
    browser.leave("button[value=share]").await;
    let url = browser.run("return document.querySelector('input.link').value").await;
    let url = format!("{}{}", served.url, url.as_str().expect("a URL"));
    let followed = url.clone();
    let status = tokio::task::spawn_blocking(move || get(&followed).status).await.unwrap();
    assert_eq!(status, 200);
    browser.leave("button[value=end-link]").await;
    let status = tokio::task::spawn_blocking(move || get(&url).status).await.unwrap();
    assert_eq!(status, 404);
    browser.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })").await;
    browser.fill("input[name=name]", "ship.png").await;
    browser.leave("button[value=rename]").await;
    browser.reads("ship.png").await;
    browser.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })").await;
    browser.leave("button[value=delete]").await;
    browser.goto(&format!("{}/s/home/files?show=deleted", served.url)).await;
    browser.reads("ship.png").await;
    browser.close().await;
}

#[tokio::test]
async fn an_upload_goes_on_after_the_connection_was_gone_and_what_failed_is_tried_again() {
    let served = Served::start(Home::new(), &[]);
    let driver = Driver::start();
    let browser = driver.browser(PHONE.0, PHONE.1).await;
    operator(&served, &browser).await;
    browser.goto(&format!("{}/s/home/files", served.url)).await;
    // The second part finds no connection; it comes back, and the upload goes on where it was.
    let broken = "const send = window.fetch; let parts = 0;
        window.fetch = (path, options) => options?.method === 'PATCH' && ++parts === 2
          ? Promise.reject(new TypeError('no network')) : send(path, options);
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(9 << 20)], 'zeros.bin'));
        const input = document.querySelector('#upload input'); input.files = data.files;
        input.dispatchEvent(new Event('change'));";
    browser.run(broken).await;
    browser.until("document.querySelector('.upload a')").await;
    browser.goto(&format!("{}/s/home/files", served.url)).await;
    browser.reads("zeros.bin").await;
    browser.reads("9216 KiB").await;
    browser.fits().await;
    // What says it is an image and is none has failed, with its reason.
    let bad = "const data = new DataTransfer();
        data.items.add(new File([new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 0, 0])], 'broken.png'));
        const input = document.querySelector('#upload input'); input.files = data.files;
        input.dispatchEvent(new Event('change'));";
    browser.run(bad).await;
    browser.until("document.querySelector('.upload a')").await;
    browser.goto(&format!("{}/s/home/files?show=failed", served.url)).await;
    reload_until(&browser, "document.querySelector('.gallery a')").await;
    browser.run("location.href = document.querySelector('.gallery a').href").await;
    browser.until("document.querySelector('p.bad')").await;
    browser.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })").await;
    browser.is_accessible().await;
    browser.leave("button[value=retry]").await;
    browser.until("document.querySelector('dl.facts')").await;
    browser.close().await;
}
