//! Forms that do not arrive in time, on a real socket.

use super::app;
use server::test_support::Wire;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_take_their_time_with_a_form_are_not_waited_for() {
    let wire = Wire::new(app, Wire::impatient_limits()).await;
    let form = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\nsec-fetch-site: same-origin\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: 100\r\n\r\nuser=x"
        )
    };
    for (what, path, expected) in [("a form", "/in", 408), ("a form that needs somebody", "/s/home", 401)] {
        let client = wire.client().await;
        client.says(form(path).as_bytes()).await;
        wire.others_are_answered().await;
        let heard = String::from_utf8_lossy(&client.hears().await).into_owned();
        let status = heard.get(9..12).and_then(|text| text.parse().ok()).unwrap_or(0);
        assert_eq!(status, expected, "a part of {what}: {heard}");
    }
}
