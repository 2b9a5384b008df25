//! Objects that are written by a thread of their own, so that sealing the next chunk does not wait for the disk.

use crate::threads;
use model::ObjectName;
use objects::{Backend, ObjectError, ObjectSink, ObjectSource};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Pieces that wait for the disk: about a megabyte.
const PIECES_MAX: usize = 16;

/// A place for objects, whose sinks are threads.
#[derive(Debug)]
pub(crate) struct PipedBackend(pub(crate) Arc<dyn Backend>);

type Reply = SyncSender<Result<(), ObjectError>>;

/// What the thread of a sink is told. After something has failed, it answers so to whatever comes.
enum SinkOrder {
    Write(Vec<u8>),
    Sync(Reply),
    Finish(Reply),
}

struct PipedSink(SyncSender<SinkOrder>);

fn gone() -> ObjectError {
    ObjectError::Failed("the thread that writes the object has ended".to_owned())
}

fn start(sink: Box<dyn ObjectSink>) -> Result<Box<dyn ObjectSink>, ObjectError> {
    let (orders, coming) = sync_channel(PIECES_MAX);
    threads::spawn("anteroom-sink", move || serve(sink, &coming))
        .map_err(|why| ObjectError::Failed(why.to_string()))?;
    Ok(Box::new(PipedSink(orders)))
}

fn serve(mut sink: Box<dyn ObjectSink>, coming: &Receiver<SinkOrder>) {
    let mut so_far = Ok(());
    while let Ok(order) = coming.recv() {
        match order {
            SinkOrder::Write(bytes) => so_far = so_far.and_then(|()| sink.write(&bytes)),
            SinkOrder::Sync(reply) => {
                so_far = so_far.and_then(|()| sink.sync());
                let _ = reply.send(so_far.clone());
            }
            SinkOrder::Finish(reply) => {
                let _ = reply.send(so_far.and_then(|()| sink.finish()));
                return;
            }
        }
    }
}

impl PipedSink {
    fn ask(&self, order: impl FnOnce(Reply) -> SinkOrder) -> Result<(), ObjectError> {
        let (reply, replied) = sync_channel(1);
        self.0.send(order(reply)).map_err(|_| gone())?;
        replied.recv().map_err(|_| gone())?
    }
}

impl ObjectSink for PipedSink {
    /// What fails is said by the next sync, or at the end.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        self.0.send(SinkOrder::Write(bytes.to_vec())).map_err(|_| gone())
    }

    fn sync(&mut self) -> Result<(), ObjectError> {
        self.ask(SinkOrder::Sync)
    }

    fn finish(self: Box<Self>) -> Result<(), ObjectError> {
        self.ask(SinkOrder::Finish)
    }
}

impl Backend for PipedBackend {
    fn word(&self) -> &'static str {
        self.0.word()
    }

    fn create(&self, name: ObjectName) -> Result<Box<dyn ObjectSink>, ObjectError> {
        self.0.create(name).and_then(start)
    }

    fn create_resumable(&self, name: ObjectName) -> Result<Box<dyn ObjectSink>, ObjectError> {
        self.0.create_resumable(name).and_then(start)
    }

    fn resume(&self, name: ObjectName, len: u64) -> Result<Box<dyn ObjectSink>, ObjectError> {
        self.0.resume(name, len).and_then(start)
    }

    fn settle(&self, name: ObjectName) {
        self.0.settle(name);
    }

    fn open_unfinished(&self, name: ObjectName) -> Result<Box<dyn ObjectSource>, ObjectError> {
        self.0.open_unfinished(name)
    }

    fn open(&self, name: ObjectName) -> Result<Box<dyn ObjectSource>, ObjectError> {
        self.0.open(name)
    }

    fn remove(&self, name: ObjectName) -> Result<(), ObjectError> {
        self.0.remove(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::FolderBackend;

    const NAME: ObjectName = ObjectName([7; 16]);

    #[test]
    fn what_is_written_is_there_in_its_order_and_what_is_given_up_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let backend = PipedBackend(Arc::new(FolderBackend::new(folder.path().to_owned()).expect("a backend")));
        let mut sink = backend.create(NAME).expect("begun");
        (0..100u8).for_each(|number| sink.write(&[number; 1000]).expect("taken"));
        sink.finish().expect("finished");
        let mut read = vec![0; 100_000];
        backend.open(NAME).expect("there").read_at(0, &mut read).expect("read");
        assert!(read.chunks(1000).enumerate().all(|(number, piece)| piece.iter().all(|byte| *byte == number as u8)));
        backend.remove(NAME).expect("removed");
        let mut sink = backend.create(NAME).expect("begun");
        sink.write(b"half").expect("taken");
        drop(sink);
        assert_eq!(backend.open(NAME).err(), Some(ObjectError::NotFound(NAME)));
    }

    /// A disk that is full from the second piece on.
    struct FullSink(u32);

    impl ObjectSink for FullSink {
        fn write(&mut self, _: &[u8]) -> Result<(), ObjectError> {
            self.0 += 1;
            if self.0 > 1 { Err(ObjectError::Full) } else { Ok(()) }
        }

        fn sync(&mut self) -> Result<(), ObjectError> {
            Ok(())
        }

        fn finish(self: Box<Self>) -> Result<(), ObjectError> {
            Ok(())
        }
    }

    #[test]
    fn what_could_not_be_written_is_said_by_whatever_says_that_it_is_durable() {
        let mut sink = start(Box::new(FullSink(0))).expect("started");
        sink.write(b"one").expect("taken");
        assert_eq!(sink.sync(), Ok(()));
        sink.write(b"two").expect("taken");
        assert_eq!(sink.sync(), Err(ObjectError::Full));
        assert_eq!(sink.finish(), Err(ObjectError::Full), "and by everything after it");
    }
}
