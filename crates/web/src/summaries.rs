//! Threads and messages in one line.

use crate::article::{short, text_of};
use queries::shapes::{Message, Thread};

/// How much of a message is shown in one line.
const GLIMPSE_CHARS: usize = 120;

/// The title of a thread, or what stands for one.
pub(crate) fn thread_title(thread: &Thread, reader: &str) -> String {
    if !thread.title.is_empty() {
        return thread.title.clone();
    }
    let others: Vec<&str> = thread.participants.iter().map(|name| short(name)).filter(|name| *name != reader).collect();
    match thread.private && !others.is_empty() {
        true => others.join(", "),
        // Under the id that an application chose.
        false if thread.id != thread.event => thread.id.clone(),
        false => format!("Untitled, by {}", short(&thread.author)),
    }
}

/// Author and text of a message.
pub(crate) fn message_summary(message: &Message) -> String {
    let text = if message.deleted { "deleted".to_owned() } else { glimpse(&text_of(message)) };
    format!("{}: {text}", short(&message.author))
}

/// The beginning of a text in one line.
pub(crate) fn glimpse(text: &str) -> String {
    // The marks of Markdown say nothing in one line.
    let letters = text.chars().filter(|letter| !"*`_#".contains(*letter));
    let line: String = letters.map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match line.char_indices().nth(GLIMPSE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
