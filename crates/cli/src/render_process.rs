//! Images are decoded in a process of their own: this program again, started for one image, with limits of memory and
//! processor time, no environment and no files. Whatever an image does to its decoder, the node goes on.
//!
//! The node writes the names of the variants and the image to its standard input; it writes the renditions, or why there are
//! none, to its standard output. Numbers are big-endian; every text and every list of bytes has its length before it.

use media::Variant;
use node::files::processing::{ImageRenderer, InProcess, MadeImage, ORIGINAL_BYTES_MAX, RenderFailure};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// The argument that makes this program such a process.
const ARGUMENT: &str = "render-images";
/// Bytes of memory that it may have: the pixels of the largest image, twice, and its decoder.
const MEMORY_BYTES_MAX: u64 = 2 << 30;
/// Seconds of processor time: ten times what the largest image takes.
const CPU_SECONDS_MAX: u64 = 20;
/// The longest answer that is believed.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
const NAMES_MAX: u32 = 64;
/// The answer that nothing is made of such files; zero is for renditions, one for a reason.
const NOT_SUPPORTED: u8 = 2;

/// Whether this process was started to render an image.
pub(crate) fn is_asked() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT)
}

/// Renders one image, from standard input to standard output.
pub(crate) fn run() -> ExitCode {
    // A second before it is killed it is told why.
    let seconds = Rlimit { current: Some(CPU_SECONDS_MAX), maximum: Some(CPU_SECONDS_MAX + 1) };
    let limited = limit(Resource::Data, MEMORY_BYTES_MAX)
        .and_then(|()| Ok(setrlimit(Resource::Cpu, seconds)?))
        .and_then(|()| limit(Resource::Fsize, 0))
        .and_then(|()| limit(Resource::Core, 0))
        .and_then(|()| limit(Resource::Nproc, 0).or(Ok(())));
    let done = limited.and_then(|()| answer(&mut io::stdin().lock(), &mut io::stdout().lock()));
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

fn answer(input: &mut impl Read, output: &mut impl Write) -> io::Result<()> {
    let names = read_number(input)?.min(NAMES_MAX);
    let mut variants = Vec::new();
    for _ in 0..names {
        let name = String::from_utf8(read_bytes(input, 256)?).map_err(io::Error::other)?;
        variants.push(name.parse::<Variant>().map_err(io::Error::other)?);
    }
    let original = read_bytes(input, ORIGINAL_BYTES_MAX)?;
    // What is thrown off by a file is thrown off by it every time.
    let rendered = std::panic::catch_unwind(|| InProcess.render(&original, &variants));
    let failed = |_| Err(RenderFailure::Refused("its decoder failed on it, so there is no preview".to_owned()));
    match rendered.unwrap_or_else(failed) {
        Ok(made) => {
            output.write_all(&[0])?;
            output.write_all(&(made.len() as u32).to_be_bytes())?;
            for image in made {
                write_bytes(output, image.variant.as_bytes())?;
                write_bytes(output, image.media_type.as_bytes())?;
                output.write_all(&image.width.to_be_bytes())?;
                output.write_all(&image.height.to_be_bytes())?;
                write_bytes(output, &image.bytes)?;
            }
        }
        Err(RenderFailure::NotSupported) => output.write_all(&[NOT_SUPPORTED])?,
        Err(why) => {
            output.write_all(&[1])?;
            write_bytes(output, why.to_string().as_bytes())?;
        }
    }
    output.flush()
}

fn read_number(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

/// Memory grows with what comes, not with what was promised.
fn read_bytes(input: &mut impl Read, most: u64) -> io::Result<Vec<u8>> {
    let length = u64::from(read_number(input)?);
    if length > most {
        return Err(io::Error::other("a length that cannot be"));
    }
    let mut bytes = Vec::new();
    input.by_ref().take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn write_bytes(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    output.write_all(&length.to_be_bytes())?;
    output.write_all(bytes)
}

/// Has a process of its own make renditions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenderProcess;

impl ImageRenderer for RenderProcess {
    fn render(&self, original: &[u8], variants: &[Variant]) -> Result<Vec<MadeImage>, RenderFailure> {
        let temporary = |why: io::Error| RenderFailure::Temporary(format!("no process to render images: {why}"));
        let mut process = std::env::current_exe()
            .and_then(|program| {
                Command::new(program)
                    .arg(ARGUMENT)
                    .env_clear()
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
            })
            .map_err(temporary)?;
        let answered = ask(&mut process, original, variants);
        let _ = process.kill();
        let ended = process.wait().map_err(temporary)?;
        match answered {
            Ok(answer) => answer,
            Err(_) if has_met_its_limits(ended) => Err(RenderFailure::Refused(TOO_MUCH.to_owned())),
            // Whoever stopped the node may have ended it: it is tried again, so many times.
            Err(why) => Err(RenderFailure::Temporary(format!("the decoder ended without a word ({ended}): {why}"))),
        }
    }
}

const TOO_MUCH: &str = "it takes more time or memory than it may to be drawn, so there is no preview of it";

/// Whether the process ended because of what the file made it do, as it would every time: it had no processor time left, or
/// no memory, or its stack was full.
fn has_met_its_limits(ended: ExitStatus) -> bool {
    let signals = [Signal::XCPU, Signal::ABORT, Signal::SEGV];
    ended.signal().is_some_and(|number| signals.iter().any(|signal| signal.as_raw() == number))
}

type Answer = Result<Vec<MadeImage>, RenderFailure>;

fn ask(process: &mut std::process::Child, original: &[u8], variants: &[Variant]) -> io::Result<Answer> {
    let closed = || io::Error::other("the process has no pipes");
    let mut input = process.stdin.take().ok_or_else(closed)?;
    input.write_all(&(variants.len() as u32).to_be_bytes())?;
    for variant in variants {
        write_bytes(&mut input, variant.name().as_bytes())?;
    }
    write_bytes(&mut input, original)?;
    drop(input);
    let mut output = process.stdout.take().ok_or_else(closed)?.take(ANSWER_BYTES_MAX);
    let mut verdict = [0];
    output.read_exact(&mut verdict)?;
    if verdict[0] == NOT_SUPPORTED {
        return Ok(Err(RenderFailure::NotSupported));
    }
    if verdict[0] != 0 {
        let why = read_bytes(&mut output, 4096)?;
        return Ok(Err(RenderFailure::Refused(String::from_utf8_lossy(&why).into_owned())));
    }
    let mut made = Vec::new();
    for _ in 0..read_number(&mut output)?.min(NAMES_MAX) {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(io::Error::other);
        let (variant, media_type) = (text(read_bytes(&mut output, 256)?)?, text(read_bytes(&mut output, 256)?)?);
        let (width, height) = (read_number(&mut output)?, read_number(&mut output)?);
        let bytes = read_bytes(&mut output, ANSWER_BYTES_MAX)?;
        made.push(MadeImage { variant, media_type, width, height, bytes });
    }
    Ok(Ok(made))
}

#[cfg(test)]
mod tests {
    use super::{NOT_SUPPORTED, answer, has_met_its_limits, write_bytes};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    #[test]
    fn what_a_file_does_to_its_decoder_is_told_from_what_others_do() {
        let ended = |signal| has_met_its_limits(ExitStatus::from_raw(signal));
        // Processor time, memory, stack; then killed, interrupted, and an end of its own.
        assert_eq!([24, 6, 11].map(ended), [true; 3]);
        assert_eq!([9, 2, 15, 0, 1 << 8].map(ended), [false; 5]);
    }

    #[test]
    fn what_has_no_preview_is_told_and_lies_about_lengths_end_the_process() {
        let mut input = 1u32.to_be_bytes().to_vec();
        write_bytes(&mut input, b"thumbnail_256").expect("written");
        write_bytes(&mut input, b"\0 no image").expect("written");
        let mut output = Vec::new();
        answer(&mut input.as_slice(), &mut output).expect("answered");
        assert_eq!(output, [NOT_SUPPORTED]);
        let cut = &input[..input.len() - 1];
        assert!(answer(&mut &cut[..], &mut Vec::new()).is_err());
        let mut long = 0u32.to_be_bytes().to_vec();
        long.extend(u32::MAX.to_be_bytes());
        assert!(answer(&mut long.as_slice(), &mut Vec::new()).is_err());
    }
}
