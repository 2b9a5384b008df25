//! Objects in an S3-compatible store.
//!
//! An object that comes in one go is cut into parts, of which one is written while the next is filled. One that may come in
//! several goes is staged in a folder beside the database, and sent when it is whole: stores keep nothing between two parts
//! that others could go on with. Reading asks for a window at a time, larger ones when it goes straight on.

mod source;

use self::source::S3Source;
use crate::backend::{Backend, ObjectError, ObjectSink, ObjectSource};
use crate::folder::FolderBackend;
use bytes::Bytes;
use model::ObjectName;
use object_store::aws::{AmazonS3, AmazonS3Builder, S3ConditionalPut};
use object_store::client::{ClientOptions, HttpClient, HttpConnector};
use object_store::path::Path as StorePath;
use object_store::{
    BackoffConfig, MultipartUpload, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, RetryConfig,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// A part of an object that is sent at once. Ten thousand of them are more than the longest content.
const PART_BYTES: usize = 8 << 20;
/// How often and how long a request is tried again.
const RETRIES: usize = 4;
const RETRY_TIME: Duration = Duration::from_secs(60);

/// Where an S3-compatible store is, and who asks.
#[derive(Clone)]
pub struct S3Options {
    /// `https://host` or `http://host:port`.
    pub endpoint: String,
    pub region: String,
    pub bucket: String,
    /// Before the names of all objects, without slashes at its ends.
    pub prefix: String,
    pub access_key_id: String,
    pub secret_access_key: String,
}

impl std::fmt::Debug for S3Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "S3Options({} {}/{})", self.endpoint, self.bucket, self.prefix)
    }
}

/// A bucket of an S3-compatible store.
#[derive(Debug)]
pub struct S3Backend {
    bucket: Arc<AmazonS3>,
    prefix: String,
    staging: FolderBackend,
    requests: Arc<Requests>,
}

/// Where requests run. Whoever asks waits on a thread of their own, whatever that does otherwise.
struct Requests(Option<Runtime>);

impl Requests {
    fn new() -> Result<Requests, ObjectError> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("anteroom-objects").enable_all().build();
        runtime.map(|runtime| Requests(Some(runtime))).map_err(|why| ObjectError::Failed(why.to_string()))
    }

    fn start<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> Option<JoinHandle<T>> {
        self.0.as_ref().map(|runtime| runtime.spawn(request))
    }

    fn wait<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> Result<T, ObjectError> {
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        self.start(async move {
            let _ = answer.send(request.await);
        });
        answered.recv().map_err(|_| ObjectError::Failed("the request was given up".to_owned()))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Requests")
    }
}

/// Connections are made by the client that we were given, whatever the library would set.
#[derive(Debug)]
struct GivenClient(reqwest::Client);

impl HttpConnector for GivenClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

impl S3Backend {
    /// Uses that bucket through that client. Nothing is asked yet.
    pub fn new(options: &S3Options, client: reqwest::Client, staging: FolderBackend) -> Result<S3Backend, ObjectError> {
        let retry = RetryConfig { backoff: BackoffConfig::default(), max_retries: RETRIES, retry_timeout: RETRY_TIME };
        let bucket = AmazonS3Builder::new()
            .with_endpoint(&options.endpoint)
            .with_allow_http(options.endpoint.starts_with("http://"))
            .with_region(&options.region)
            .with_bucket_name(&options.bucket)
            .with_access_key_id(&options.access_key_id)
            .with_secret_access_key(&options.secret_access_key)
            .with_virtual_hosted_style_request(false)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_retry(retry)
            .with_http_connector(GivenClient(client))
            .build()
            .map_err(|why| ObjectError::Failed(why.to_string()))?;
        let requests = Arc::new(Requests::new()?);
        Ok(S3Backend { bucket: Arc::new(bucket), prefix: options.prefix.clone(), staging, requests })
    }

    fn path(&self, name: ObjectName) -> StorePath {
        match self.prefix.as_str() {
            "" => StorePath::from(name.to_string()),
            prefix => StorePath::from(format!("{prefix}/{name}")),
        }
    }

    fn sink(&self, name: ObjectName) -> S3Sink {
        let (bucket, path, requests) = (self.bucket.clone(), self.path(name), self.requests.clone());
        S3Sink { name, bucket, path, requests, buffer: Vec::new(), parts: None }
    }

    /// Writes an object only if there is none of its name, as one request. Says whether it was written.
    pub(crate) fn put_if_absent(&self, name: ObjectName, bytes: Vec<u8>) -> Result<bool, ObjectError> {
        let (bucket, path) = (self.bucket.clone(), self.path(name));
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = async move { bucket.put_opts(&path, PutPayload::from(bytes), options).await };
        match self.requests.wait(put)? {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Ok(false),
            Err(why) => Err(failure(name, &why)),
        }
    }
}

fn failure(name: ObjectName, why: &object_store::Error) -> ObjectError {
    match why {
        object_store::Error::NotFound { .. } => ObjectError::NotFound(name),
        other => ObjectError::Failed(describe(other)),
    }
}

/// What went wrong, with what was behind it.
fn describe(why: &dyn std::error::Error) -> String {
    let mut text = why.to_string();
    let mut source = why.source();
    while let Some(behind) = source {
        let more = behind.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = behind.source();
    }
    text
}

impl Backend for S3Backend {
    fn word(&self) -> &'static str {
        "s3"
    }

    fn create(&self, name: ObjectName) -> Result<Box<dyn ObjectSink>, ObjectError> {
        Ok(Box::new(self.sink(name)))
    }

    fn create_resumable(&self, name: ObjectName) -> Result<Box<dyn ObjectSink>, ObjectError> {
        let staged = self.staging.create(name)?;
        Ok(Box::new(StagedSink { staged, target: self.sink(name), staging: self.staging.clone() }))
    }

    fn resume(&self, name: ObjectName, len: u64) -> Result<Box<dyn ObjectSink>, ObjectError> {
        let staged = self.staging.resume(name, len)?;
        Ok(Box::new(StagedSink { staged, target: self.sink(name), staging: self.staging.clone() }))
    }

    fn settle(&self, name: ObjectName) {
        // If this fails, the folder has a file too many, which goes with the object.
        if let Err(why) = self.staging.remove(name) {
            tracing::warn!(%name, %why, "a staged object could not be removed");
        }
    }

    fn open_unfinished(&self, name: ObjectName) -> Result<Box<dyn ObjectSource>, ObjectError> {
        self.staging.open_unfinished(name)
    }

    fn open(&self, name: ObjectName) -> Result<Box<dyn ObjectSource>, ObjectError> {
        // What was kept before the bucket was used, or restored, is in the folder.
        match self.staging.open(name) {
            Err(ObjectError::NotFound(_)) => {}
            other => return other,
        }
        let (bucket, path) = (self.bucket.clone(), self.path(name));
        let asked = path.clone();
        let about = self.requests.wait(async move { bucket.head(&asked).await })?;
        let len = about.map_err(|why| failure(name, &why))?.size;
        let (bucket, requests) = (self.bucket.clone(), self.requests.clone());
        Ok(Box::new(S3Source { name, bucket, path, requests, len, window: Bytes::new(), window_at: 0 }))
    }

    fn remove(&self, name: ObjectName) -> Result<(), ObjectError> {
        self.staging.remove(name)?;
        let (bucket, path) = (self.bucket.clone(), self.path(name));
        match self.requests.wait(async move { bucket.delete(&path).await })? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(why) => Err(failure(name, &why)),
        }
    }
}

/// An object that is sent part by part.
struct S3Sink {
    name: ObjectName,
    bucket: Arc<AmazonS3>,
    path: StorePath,
    requests: Arc<Requests>,
    buffer: Vec<u8>,
    /// Once there was more than one part.
    parts: Option<Parts>,
}

struct Parts {
    upload: Box<dyn MultipartUpload>,
    /// The part that is under way.
    sending: Option<JoinHandle<object_store::Result<()>>>,
}

impl S3Sink {
    fn send_part(&mut self) -> Result<(), ObjectError> {
        let name = self.name;
        if self.parts.is_none() {
            let (bucket, path) = (self.bucket.clone(), self.path.clone());
            let begun = self.requests.wait(async move { bucket.put_multipart(&path).await })?;
            let upload = begun.map_err(|why| failure(name, &why))?;
            self.parts = Some(Parts { upload, sending: None });
        }
        let Some(parts) = &mut self.parts else { return Ok(()) };
        parts.wait(&self.requests, name)?;
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(PART_BYTES));
        parts.sending = self.requests.start(parts.upload.put_part(PutPayload::from(bytes)));
        Ok(())
    }
}

impl Parts {
    /// Waits for the part that is under way.
    fn wait(&mut self, requests: &Requests, name: ObjectName) -> Result<(), ObjectError> {
        let Some(sending) = self.sending.take() else { return Ok(()) };
        match requests.wait(sending)? {
            Ok(sent) => sent.map_err(|why| failure(name, &why)),
            Err(why) => Err(ObjectError::Failed(why.to_string())),
        }
    }
}

impl ObjectSink for S3Sink {
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), ObjectError> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at((PART_BYTES - self.buffer.len()).min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == PART_BYTES {
                self.send_part()?;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), ObjectError> {
        Err(ObjectError::Failed("an object that is sent part by part cannot go on later".to_owned()))
    }

    fn finish(mut self: Box<Self>) -> Result<(), ObjectError> {
        let (name, requests) = (self.name, self.requests.clone());
        if self.parts.is_none() {
            let (bucket, path, bytes) = (self.bucket.clone(), self.path.clone(), std::mem::take(&mut self.buffer));
            let put = requests.wait(async move { bucket.put(&path, PutPayload::from(bytes)).await })?;
            return put.map(drop).map_err(|why| failure(name, &why));
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        let Some(mut parts) = self.parts.take() else { return Ok(()) };
        if let Err(why) = parts.wait(&requests, name) {
            abort(&requests, parts);
            return Err(why);
        }
        let completed = requests.wait(async move {
            let completed = parts.upload.complete().await;
            if completed.is_err() {
                give_up(parts).await;
            }
            completed
        })?;
        completed.map(drop).map_err(|why| failure(name, &why))
    }
}

impl Drop for S3Sink {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            abort(&self.requests, parts);
        }
    }
}

fn abort(requests: &Requests, parts: Parts) {
    requests.start(give_up(parts));
}

/// Parts that were given up are removed, as far as the store answers now.
async fn give_up(mut parts: Parts) {
    if let Some(sending) = parts.sending.take() {
        sending.abort();
    }
    if let Err(why) = parts.upload.abort().await {
        tracing::warn!(%why, "parts of an upload to the object store stay; a lifecycle rule of the bucket removes them");
    }
}

/// An object that is written into the staging folder, and sent when it is whole.
struct StagedSink {
    staged: Box<dyn ObjectSink>,
    target: S3Sink,
    staging: FolderBackend,
}

impl ObjectSink for StagedSink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        self.staged.write(bytes)
    }

    fn sync(&mut self) -> Result<(), ObjectError> {
        self.staged.sync()
    }

    fn finish(self: Box<Self>) -> Result<(), ObjectError> {
        let StagedSink { mut staged, mut target, staging } = *self;
        staged.sync()?;
        let name = target.name;
        let mut whole = staging.open_unfinished(name)?;
        let (mut at, end) = (0, whole.len());
        let mut piece = Vec::new();
        while at < end {
            piece.resize(usize::try_from((end - at).min(1 << 20)).unwrap_or(1 << 20), 0);
            whole.read_at(at, &mut piece)?;
            target.write(&piece)?;
            at += piece.len() as u64;
        }
        // What is staged stays until somebody has said that the object is there: it goes on from it otherwise.
        Box::new(target).finish()
    }
}
