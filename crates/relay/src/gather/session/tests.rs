//! What a session says to relays that compare, that do not, and that do not behave.
#![allow(clippy::unwrap_used)]
use super::*;

struct Nothing;

impl LocalEvents for Nothing {
    fn ids(&self, _: &NostrFilter) -> Option<Vec<(u64, NostrId)>> {
        Some(Vec::new())
    }

    fn is_settled(&self, _: &NostrId) -> bool {
        false
    }
}

fn event(kind: u16, at: u64) -> VerifiedNostr {
    NostrEvent::sign(&[7; 32], at, kind, Vec::new(), "").unwrap()
}

fn session() -> GatherSession {
    let filter = NostrFilter { kinds: Some([1].into()), ..NostrFilter::default() };
    GatherSession::new(vec![filter], Vec::new())
}

#[test]
fn what_is_done_is_not_asked_for_again() {
    let filter = |kind: u16| NostrFilter { kinds: Some([kind].into()), ..NostrFilter::default() };
    let all = vec![filter(1), filter(2), filter(3)];
    let mut session = GatherSession::new(all.clone(), vec![filter(1), filter(3)]);
    assert!(words(session.begin(&Nothing))[1].starts_with(r#"NEG-OPEN {"kinds":[2]}"#));
    let mut session = GatherSession::new(all.clone(), all);
    assert_eq!(words(session.begin(&Nothing)).last(), Some(&"live".to_owned()));
}

/// What is sent, by its first words, and what is taken.
fn words(outputs: Vec<GatherOutput>) -> Vec<String> {
    let word = |output| match output {
        GatherOutput::Send(text) => {
            let message: Value = serde_json::from_str(&text).unwrap();
            format!("{} {}", message[0].as_str().unwrap(), message[2]).trim().to_owned()
        }
        GatherOutput::Take(event) => format!("take {}", event.created_at),
        GatherOutput::Live => "live".to_owned(),
    };
    outputs.into_iter().map(word).collect()
}

#[test]
fn a_relay_that_does_not_compare_is_read_page_by_page() {
    for refusal in [r#"["NOTICE","what?"]"#, r#"["NEG-ERR","compare","blocked: no"]"#, r#"["CLOSED","compare",""]"#] {
        let mut session = session();
        let begun = words(session.begin(&Nothing));
        assert_eq!(begun[0], r#"REQ {"kinds":[1],"limit":0}"#);
        assert!(begun[1].starts_with("NEG-OPEN") && begun.len() == 2);
        // What is live meanwhile is taken, and does not count for a page.
        let text = format!(r#"["EVENT","live",{}]"#, event(1, 5).to_json());
        assert_eq!(words(session.hear(&text, &Nothing).unwrap()), ["take 5"]);
        let asked = words(session.hear(refusal, &Nothing).unwrap());
        assert_eq!(asked, [r#"REQ {"kinds":[1],"limit":500}"#]);
        session.hear(&text, &Nothing).unwrap();
        for at in [30, 20] {
            let text = format!(r#"["EVENT","gather",{}]"#, event(1, at).to_json());
            assert_eq!(words(session.hear(&text, &Nothing).unwrap()), [format!("take {at}")]);
        }
        let asked = words(session.hear(r#"["EOSE","gather"]"#, &Nothing).unwrap());
        assert_eq!(asked, [r#"REQ {"kinds":[1],"limit":500,"until":20}"#]);
        // The same again: nothing older is there.
        let text = format!(r#"["EVENT","gather",{}]"#, event(1, 20).to_json());
        session.hear(&text, &Nothing).unwrap();
        let ended = words(session.hear(r#"["EOSE","gather"]"#, &Nothing).unwrap());
        assert_eq!(ended, ["CLOSE null", "live"]);
        assert!(session.is_live());
        let text = format!(r#"["EVENT","live",{}]"#, event(1, 2000).to_json());
        assert_eq!(words(session.hear(&text, &Nothing).unwrap()), ["take 2000"]);
    }
}

#[test]
fn a_second_that_fills_a_page_does_not_hide_what_is_older() {
    let mut session = session();
    session.begin(&Nothing);
    session.hear(r#"["NOTICE",""]"#, &Nothing).unwrap();
    let text = format!(r#"["EVENT","gather",{}]"#, event(1, 20).to_json());
    let mut page = || {
        (0..PAGE_EVENTS).for_each(|_| drop(session.hear(&text, &Nothing).unwrap()));
        words(session.hear(r#"["EOSE","gather"]"#, &Nothing).unwrap())
    };
    assert_eq!(page(), [r#"REQ {"kinds":[1],"limit":500,"until":20}"#]);
    assert_eq!(page(), [r#"REQ {"kinds":[1],"limit":500,"until":19}"#]);
}

#[test]
fn silence_is_taken_for_a_no_once() {
    let mut session = session();
    session.begin(&Nothing);
    assert_eq!(words(session.on_silence().unwrap()), [r#"REQ {"kinds":[1],"limit":500}"#]);
    assert!(session.on_silence().is_none());
}

#[test]
fn rubbish_and_endless_comparisons_end_the_session() {
    let other = format!(r#"["EVENT","gather",{}]"#, event(2, 5).to_json());
    let mut forged = event(1, 5).to_json();
    forged = forged.replacen("\"created_at\":5", "\"created_at\":6", 1);
    for text in [other, format!(r#"["EVENT","gather",{forged}]"#), r#"["EVENT","gather",7]"#.to_owned()] {
        let mut session = session();
        session.begin(&Nothing);
        let heard: Vec<_> = (0..=RUBBISH_MAX).map(|_| session.hear(&text, &Nothing).map(words)).collect();
        assert!(heard[..RUBBISH_MAX as usize].iter().all(|heard| *heard == Ok(Vec::new())), "{text}");
        assert_eq!(heard.last(), Some(&Err(Misbehaved::Rubbish)), "{text}");
    }
    let mut session = session();
    session.begin(&Nothing);
    for text in ["hello", r#"["NEG-MSG","compare","zz"]"#, r#"["NEG-MSG","compare","00"]"#] {
        assert_eq!(session.hear(text, &Nothing).map(words), Err(Misbehaved::Rubbish), "{text}");
    }
}
