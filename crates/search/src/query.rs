//! Builds index queries from parsed words, within limits. Callers cannot use the query language of the search engine.

use crate::errors::{BadQuery, IndexError};
use crate::schema::{Fields, SEQ_FIELD};
use crate::tokenizer::{QueryPart, parse_query};
use model::{Identity, Nanos, Seq};
use std::collections::BTreeMap;
use std::ops::Bound;
use tantivy::collector::TopDocs;
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, Occur, PhrasePrefixQuery, PhraseQuery, RangeQuery, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, Term};

/// The last word is a prefix; it is expanded to at most this many words, the most frequent first.
const EXPANSIONS_MAX: usize = 64;
/// How many words of each segment are considered for that.
const EXPANSION_CANDIDATES_MAX: usize = 10_000;
/// The factor for the score of words in the title.
const TITLE_BOOST: f32 = 2.0;

type Clause = Box<dyn tantivy::query::Query>;

/// All words must occur; the last one is a prefix; quotation marks make phrases.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexQuery {
    pub text: String,
    pub thread: Option<Seq>,
    pub author: Option<Identity>,
    /// Only messages written before this time.
    pub before: Option<Nanos>,
    /// Only messages written after this time.
    pub after: Option<Nanos>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hit {
    pub seq: Seq,
    /// Comparable only with other hits of the same query.
    pub score: f32,
}

/// Checks that a query can be parsed.
pub fn check(query: &IndexQuery) -> Result<(), IndexError> {
    Ok(ParsedQuery::new(query).map(drop)?)
}

pub(crate) struct ParsedQuery<'a> {
    query: &'a IndexQuery,
    parts: Vec<QueryPart>,
}

impl<'a> ParsedQuery<'a> {
    pub(crate) fn new(query: &'a IndexQuery) -> Result<ParsedQuery<'a>, BadQuery> {
        Ok(ParsedQuery { query, parts: parse_query(&query.text)? })
    }

    /// The best hits, without the first `skip`.
    pub(crate) fn find_hits(
        &self,
        searcher: &Searcher,
        fields: &Fields,
        limit: usize,
        skip: usize,
    ) -> tantivy::Result<Vec<Hit>> {
        let wanted = self.build(searcher, fields)?;
        let top = searcher.search(&wanted, &TopDocs::with_limit(limit).and_offset(skip).order_by_score())?;
        let mut hits = Vec::with_capacity(top.len());
        for (score, place) in top {
            let column = searcher.segment_reader(place.segment_ord).fast_fields().u64(SEQ_FIELD)?;
            hits.extend(column.first(place.doc_id).map(|seq| Hit { seq: Seq(seq), score }));
        }
        Ok(hits)
    }

    fn build(&self, searcher: &Searcher, fields: &Fields) -> tantivy::Result<BooleanQuery> {
        let mut clauses: Vec<(Occur, Clause)> = Vec::new();
        for part in &self.parts {
            clauses.push((Occur::Must, part_clause(searcher, fields.text, part)?));
            clauses.extend(part.words().iter().map(|word| (Occur::Should, title_clause(fields, word))));
        }
        let IndexQuery { thread, author, before, after, .. } = self.query;
        let thread = thread.map(|thread| term_filter(Term::from_field_u64(fields.thread, thread.0)));
        let author = author.map(|author| term_filter(Term::from_field_text(fields.author, &author.to_string())));
        let filters = [thread, author, time_filter(fields.at, *after, *before)].into_iter().flatten();
        clauses.extend(filters.map(|filter| (Occur::Must, Box::new(ConstScoreQuery::new(filter, 0.0)) as Clause)));
        Ok(BooleanQuery::new(clauses))
    }
}

fn term_filter(term: Term) -> Clause {
    Box::new(TermQuery::new(term, IndexRecordOption::Basic))
}

fn scored_term(term: Term) -> Clause {
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

fn title_clause(fields: &Fields, word: &str) -> Clause {
    Box::new(BoostQuery::new(scored_term(Term::from_field_text(fields.title, word)), TITLE_BOOST))
}

fn time_filter(field: Field, after: Option<Nanos>, before: Option<Nanos>) -> Option<Clause> {
    let bound =
        |at: Option<Nanos>| at.map_or(Bound::Unbounded, |at| Bound::Excluded(Term::from_field_u64(field, at.0)));
    (after.is_some() || before.is_some()).then(|| Box::new(RangeQuery::new(bound(after), bound(before))) as Clause)
}

fn part_clause(searcher: &Searcher, field: Field, part: &QueryPart) -> tantivy::Result<Clause> {
    let terms = |words: &[String]| words.iter().map(|word| Term::from_field_text(field, word)).collect::<Vec<_>>();
    Ok(match part {
        QueryPart::Exact(words) => match words.as_slice() {
            [word] => scored_term(Term::from_field_text(field, word)),
            words => Box::new(PhraseQuery::new(terms(words))),
        },
        QueryPart::Prefix(words) => match words.as_slice() {
            [word] => prefix_clause(searcher, field, word)?,
            words => {
                let mut phrase = PhrasePrefixQuery::new(terms(words));
                phrase.set_max_expansions(EXPANSIONS_MAX as u32);
                Box::new(phrase)
            }
        },
    })
}

/// Matches any word with this prefix.
fn prefix_clause(searcher: &Searcher, field: Field, word: &str) -> tantivy::Result<Clause> {
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field)?;
        let mut stream = index.terms().range().ge(word.as_bytes()).into_stream()?;
        for _ in 0..EXPANSION_CANDIDATES_MAX {
            if !stream.advance() || !stream.key().starts_with(word.as_bytes()) {
                break;
            }
            let count = u64::from(stream.value().doc_freq);
            *found.entry(String::from_utf8_lossy(stream.key()).into_owned()).or_default() += count;
        }
    }
    let mut found: Vec<(String, u64)> = found.into_iter().collect();
    // The word itself is always included.
    found.sort_by_key(|(expansion, count)| (expansion != word, std::cmp::Reverse(*count)));
    found.truncate(EXPANSIONS_MAX);
    if found.is_empty() {
        return Ok(Box::new(EmptyQuery));
    }
    let any = found.iter().map(|(expansion, _)| scored_term(Term::from_field_text(field, expansion)));
    Ok(Box::new(BooleanQuery::union(any.collect())))
}
