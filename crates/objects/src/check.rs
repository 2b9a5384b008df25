//! Whether a place that keeps objects does what is expected of it: for operators, before they trust it.

use crate::backend::{Backend, ObjectError};
use crate::s3::S3Backend;
use model::ObjectName;

/// More than one part of what is sent to a store.
const LONG_BYTES: usize = (8 << 20) + 12_345;

/// One thing that was tried, and how it went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectCheck {
    pub what: &'static str,
    /// Why it did not go as expected.
    pub problem: Option<String>,
}

/// Writes, reads and removes objects of these random names.
pub fn check_objects(backend: &dyn Backend, names: [ObjectName; 2]) -> Vec<ObjectCheck> {
    let [short, long] = names;
    let long_bytes: Vec<u8> = (0..LONG_BYTES).map(|at| (at / 3) as u8).collect();
    let mut checks = Vec::new();
    let mut tried = |what, outcome: Result<bool, ObjectError>| {
        let problem = match outcome {
            Ok(true) => None,
            Ok(false) => Some("the answer is not what was expected".to_owned()),
            Err(why) => Some(why.to_string()),
        };
        checks.push(ObjectCheck { what, problem });
    };
    tried("a short object is written", write(backend, short, b"a short object").map(|()| true));
    tried("it reads back", read(backend, short, 0, 14).map(|bytes| bytes == b"a short object"));
    tried("a long object is written in parts", write(backend, long, &long_bytes).map(|()| true));
    tried("its length is right", backend.open(long).map(|source| source.len() == LONG_BYTES as u64));
    let at = LONG_BYTES - 70_000;
    tried(
        "a range of it reads back",
        read(backend, long, at as u64, 60_000).map(|got| got == long_bytes[at..at + 60_000]),
    );
    tried("an unfinished object has no name", unfinished(backend, short));
    for (what, name) in [("the short object is removed", short), ("the long object is removed", long)] {
        let gone = backend.remove(name).map(|()| matches!(backend.open(name), Err(ObjectError::NotFound(_))));
        tried(what, gone);
    }
    tried("removing what is not there is no mistake", backend.remove(short).map(|()| true));
    checks
}

/// What is asked of a store on top: that nothing is overwritten by mistake.
pub fn check_conditions(backend: &S3Backend, name: ObjectName) -> Vec<ObjectCheck> {
    let said = |outcome: Result<bool, ObjectError>, expected: bool, otherwise: &str| match outcome {
        Ok(written) if written == expected => None,
        Ok(_) => Some(otherwise.to_owned()),
        Err(why) => Some(why.to_string()),
    };
    let first = said(backend.put_if_absent(name, vec![1]), true, "it says that there is one already");
    let why = "it was overwritten: the store ignores `If-None-Match: *`";
    let second = said(backend.put_if_absent(name, vec![2]), false, why);
    let removed = backend.remove(name).err().map(|why| why.to_string());
    Vec::from([
        ObjectCheck { what: "an object that is not there is written on that condition", problem: first },
        ObjectCheck { what: "one that is there is not overwritten on that condition", problem: second },
        ObjectCheck { what: "it is removed", problem: removed },
    ])
}

fn write(backend: &dyn Backend, name: ObjectName, bytes: &[u8]) -> Result<(), ObjectError> {
    let mut sink = backend.create(name)?;
    bytes.chunks(100_000).try_for_each(|piece| sink.write(piece))?;
    sink.finish()
}

fn read(backend: &dyn Backend, name: ObjectName, at: u64, len: usize) -> Result<Vec<u8>, ObjectError> {
    let mut bytes = vec![0; len];
    backend.open(name)?.read_at(at, &mut bytes)?;
    Ok(bytes)
}

/// Begins an object anew that is there, and gives it up.
fn unfinished(backend: &dyn Backend, name: ObjectName) -> Result<bool, ObjectError> {
    let before = backend.open(name)?.len();
    let mut sink = backend.create(name)?;
    sink.write(b"something else, and longer")?;
    drop(sink);
    Ok(backend.open(name)?.len() == before)
}
