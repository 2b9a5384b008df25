//! Questions, and what is asked of the index for them. Everything is built from words within bounds; nothing that a
//! caller wrote is read as a language.

use crate::index::IndexError;
use crate::schema::{Fields, SEQ};
use crate::tokenizer::{BadQuery, QueryPart, parts};
use model::{Identity, Nanos, Seq};
use std::collections::BTreeMap;
use std::ops::Bound;
use tantivy::collector::TopDocs;
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, Occur, PhrasePrefixQuery, PhraseQuery, RangeQuery, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, Term};

/// How far one can page: the index ranks everything before a page in memory.
pub const REACH_MAX: usize = 10_000;
/// In how many ways the last word may go on: the most frequent ones are taken.
const ENDINGS_MAX: usize = 64;
/// How many words of one segment are looked at for that.
const ENDINGS_LOOKED_AT_MAX: usize = 10_000;
/// How much more a word in the title weighs.
const TITLE_BOOST: f32 = 2.0;

type Clause = Box<dyn tantivy::query::Query>;

/// What is searched for. All words must be there; the last one may go on; quotation marks make phrases.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexQuery {
    /// The words.
    pub text: String,
    /// Only in this thread.
    pub thread: Option<Seq>,
    /// Only by this author.
    pub author: Option<Identity>,
    /// Only what was written before.
    pub before: Option<Nanos>,
    /// Only what was written after.
    pub after: Option<Nanos>,
}

/// A message that was found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hit {
    /// Its number.
    pub seq: Seq,
    /// How well it fits, compared with other hits of the same question.
    pub score: f32,
}

/// Whether a question can be asked at all.
pub fn check(query: &IndexQuery) -> Result<(), IndexError> {
    Ok(ParsedQuery::new(query).map(drop)?)
}

/// A question with its words taken apart.
pub(crate) struct ParsedQuery<'a> {
    query: &'a IndexQuery,
    parts: Vec<QueryPart>,
}

impl<'a> ParsedQuery<'a> {
    /// Checks a question, before anything is read for it.
    pub(crate) fn new(query: &'a IndexQuery) -> Result<ParsedQuery<'a>, BadQuery> {
        Ok(ParsedQuery { query, parts: parts(&query.text)? })
    }

    /// The best hits after the first so many.
    pub(crate) fn hits(
        &self,
        searcher: &Searcher,
        fields: &Fields,
        most: usize,
        skip: usize,
    ) -> tantivy::Result<Vec<Hit>> {
        let wanted = self.clauses(searcher, fields)?;
        let top = searcher.search(&wanted, &TopDocs::with_limit(most).and_offset(skip).order_by_score())?;
        let mut hits = Vec::with_capacity(top.len());
        for (score, place) in top {
            let column = searcher.segment_reader(place.segment_ord).fast_fields().u64(SEQ)?;
            hits.extend(column.first(place.doc_id).map(|seq| Hit { seq: Seq(seq), score }));
        }
        Ok(hits)
    }

    fn clauses(&self, searcher: &Searcher, fields: &Fields) -> tantivy::Result<BooleanQuery> {
        let mut clauses: Vec<(Occur, Clause)> = Vec::new();
        for part in &self.parts {
            clauses.push((Occur::Must, wanted(searcher, fields.text, part)?));
            clauses.extend(part.words().iter().map(|word| (Occur::Should, in_title(fields, word))));
        }
        let IndexQuery { thread, author, before, after, .. } = self.query;
        let thread = thread.map(|thread| exactly(Term::from_field_u64(fields.thread, thread.0)));
        let author = author.map(|author| exactly(Term::from_field_text(fields.author, &author.to_string())));
        let filters = [thread, author, between(fields.at, *after, *before)].into_iter().flatten();
        clauses.extend(filters.map(|filter| (Occur::Must, Box::new(ConstScoreQuery::new(filter, 0.0)) as Clause)));
        Ok(BooleanQuery::new(clauses))
    }
}

fn exactly(term: Term) -> Clause {
    Box::new(TermQuery::new(term, IndexRecordOption::Basic))
}

fn counted(term: Term) -> Clause {
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

fn in_title(fields: &Fields, word: &str) -> Clause {
    Box::new(BoostQuery::new(counted(Term::from_field_text(fields.title, word)), TITLE_BOOST))
}

fn between(field: Field, after: Option<Nanos>, before: Option<Nanos>) -> Option<Clause> {
    let bound =
        |at: Option<Nanos>| at.map_or(Bound::Unbounded, |at| Bound::Excluded(Term::from_field_u64(field, at.0)));
    (after.is_some() || before.is_some()).then(|| Box::new(RangeQuery::new(bound(after), bound(before))) as Clause)
}

fn wanted(searcher: &Searcher, field: Field, part: &QueryPart) -> tantivy::Result<Clause> {
    let terms = |words: &[String]| words.iter().map(|word| Term::from_field_text(field, word)).collect::<Vec<_>>();
    Ok(match part {
        QueryPart::Exact(words) => match words.as_slice() {
            [word] => counted(Term::from_field_text(field, word)),
            words => Box::new(PhraseQuery::new(terms(words))),
        },
        QueryPart::Begun(words) => match words.as_slice() {
            [word] => begun(searcher, field, word)?,
            words => {
                let mut phrase = PhrasePrefixQuery::new(terms(words));
                phrase.set_max_expansions(ENDINGS_MAX as u32);
                Box::new(phrase)
            }
        },
    })
}

/// Any of the words that begin like this one.
fn begun(searcher: &Searcher, field: Field, word: &str) -> tantivy::Result<Clause> {
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field)?;
        let mut stream = index.terms().range().ge(word.as_bytes()).into_stream()?;
        for _ in 0..ENDINGS_LOOKED_AT_MAX {
            if !stream.advance() || !stream.key().starts_with(word.as_bytes()) {
                break;
            }
            let count = u64::from(stream.value().doc_freq);
            *found.entry(String::from_utf8_lossy(stream.key()).into_owned()).or_default() += count;
        }
    }
    let mut found: Vec<(String, u64)> = found.into_iter().collect();
    // The word as it was written is always among them.
    found.sort_by_key(|(ending, count)| (ending != word, std::cmp::Reverse(*count)));
    found.truncate(ENDINGS_MAX);
    if found.is_empty() {
        return Ok(Box::new(EmptyQuery));
    }
    let any = found.iter().map(|(ending, _)| counted(Term::from_field_text(field, ending)));
    Ok(Box::new(BooleanQuery::union(any.collect())))
}
