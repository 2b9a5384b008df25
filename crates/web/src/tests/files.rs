//! How files stand, as the operator sees it.

use super::Home;
use super::pages::browse;
use model::FileId;
use node::commands::files::{FileCommand, FileRequest, NewFile};
use node::commands::{Caller, CallerKind};
use node::files::upload::{Upload, UploadRequest};

const FILE: FileId = FileId([3; 16]);

fn operator_for(user: Option<&str>) -> Caller {
    let user = user.map(str::to_owned);
    Caller { kind: CallerKind::Operator, user, audit_name: "a test".to_owned() }
}

/// Uploads what begins like an image, and has its processing fail.
fn upload_and_fail(home: &Home, name: &str) {
    let node = &home.state.node;
    let request = UploadRequest {
        space: home.space,
        caller: operator_for(Some("alice")),
        file: FILE,
        new: Some(NewFile { name: name.to_owned(), ..NewFile::default() }),
        sha256: None,
        by_link: None,
        size_max: 1000,
        size_min: None,
        idempotency: None,
        random: [7; 32],
    };
    let mut upload = Upload::new(node.clone(), request);
    upload.write(b"\x89PNG\r\n\x1a\n and so on").expect("taken");
    upload.finish().expect("uploaded");
    let (space, command) = (home.space, FileCommand::FailWork("it looks <wrong>".to_owned()));
    let (caller, random) = (operator_for(None), [7; 32]);
    node.ask(FileRequest { space, caller, file: FILE, command, idempotency: None, random }).expect("failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_sees_what_has_failed_and_has_it_tried_again() {
    let home = Home::new();
    upload_and_fail(&home, "boat <b>.png");
    let operator = home.session("operator", true);
    let page = browse(&home, "/inside/files", &operator, None).await;
    assert_eq!(page.status, 200, "{}", page.text);
    for shown in ["boat &lt;b&gt;.png", "it looks &lt;wrong&gt;", "Try again", &FILE.to_name(), "Open uploads: 0."] {
        assert!(page.text.contains(shown), "{shown}: {}", page.text);
    }
    let waits = || home.state.node.snapshot().expect("a snapshot").file_job(&home.space, FILE).expect("read").is_some();
    assert!(!waits());
    let form = format!("space={}&file={}", home.space, FILE.to_name());
    let again = browse(&home, "/inside/files", &operator, Some(&form)).await;
    assert_eq!((again.status.as_u16(), again.header("location")), (303, "/inside/files"), "{}", again.text);
    assert!(waits());
    let member = home.session("alice", false);
    assert_eq!(browse(&home, "/inside/files", &member, Some(&form)).await.status, 403);
    for bad in [format!("space={}&file=cat.png", home.space), format!("space=x&file={}", FILE.to_name())] {
        assert_eq!(browse(&home, "/inside/files", &operator, Some(&bad)).await.status, 404, "{bad}");
    }
}
