//! What is known of programming languages: enough to tell comments, texts, numbers and keywords apart.

/// How a language is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Language {
    /// Endings of file names, and whole names.
    names: &'static [&'static str],
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// What texts begin and end with, the longest first.
    pub(super) quotes: &'static [Quote],
    keywords: &'static str,
}

/// How a text is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) mark: &'static str,
    /// Whether a backslash takes the meaning of what follows it.
    pub(super) has_escapes: bool,
    /// Whether it may go on in the next line.
    pub(super) has_lines: bool,
}

const fn quote(mark: &'static str) -> Quote {
    Quote { mark, has_escapes: true, has_lines: false }
}

const fn long_quote(mark: &'static str) -> Quote {
    Quote { mark, has_escapes: true, has_lines: true }
}

const fn bare_quote(mark: &'static str) -> Quote {
    Quote { mark, has_escapes: false, has_lines: true }
}

const C_COMMENT: Option<(&str, &str)> = Some(("/*", "*/"));
const C_QUOTES: &[Quote] = &[quote("\""), quote("'")];

const LANGUAGES: &[Language] = &[
    Language {
        names: &[".rs"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &[long_quote("\"")],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod \
                   move mut pub ref return self Self static struct super trait true type unsafe use where while",
    },
    Language {
        names: &[".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".m", ".mm", ".cu", ".glsl"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: C_QUOTES,
        keywords: "alignas alignof auto bool break case catch char class const constexpr continue default delete do double else \
                   enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept \
                   nullptr operator private protected public register return short signed sizeof static struct switch template \
                   this throw true try typedef typename union unsigned using virtual void volatile while",
    },
    Language {
        names: &[".java", ".kt", ".kts", ".cs", ".scala", ".swift", ".dart", ".groovy", ".gradle", ".proto"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &[long_quote("\"\"\""), quote("\""), quote("'")],
        keywords: "abstract as async await boolean break case catch class const continue def default do double else enum extends \
                   extension false final finally float for foreach fun func get guard if implements import in init int \
                   interface internal is let long message namespace new nil null object open override package private \
                   protected protocol public return sealed set short static struct super switch synchronized this throw \
                   throws trait true try typealias val var void when where while yield",
    },
    Language {
        names: &[".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &[quote("\""), quote("'"), long_quote("`")],
        keywords: "abstract any as async await boolean break case catch class const continue debugger declare default delete do \
                   else enum export extends false finally for from function get if implements import in instanceof interface \
                   keyof let namespace never new null number of private protected public readonly return set static string \
                   super switch this throw true try type typeof undefined unknown var void while with yield",
    },
    Language {
        names: &[".go"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &[quote("\""), quote("'"), bare_quote("`")],
        keywords: "any bool break byte case chan const continue default defer else error fallthrough false float64 for func go \
                   goto if import int int64 interface iota map nil package range return rune select string struct switch true \
                   type uint var",
    },
    Language {
        names: &[".py", ".pyi", ".pyw", "SConstruct"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &[long_quote("\"\"\""), long_quote("'''"), quote("\""), quote("'")],
        keywords: "False None True and as assert async await break case class continue def del elif else except finally for from \
                   global if import in is lambda match nonlocal not or pass raise return try while with yield",
    },
    Language {
        names: &[".rb", ".rake", ".cr", ".ex", ".exs", ".erl", ".jl", "Gemfile", "Rakefile"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &[long_quote("\"\"\""), quote("\""), quote("'")],
        keywords: "alias and begin break case class def defmodule defp do else elsif end ensure false fn for function if in \
                   include module next nil not or raise receive redo require rescue retry return self super then true unless \
                   until use when while yield",
    },
    Language {
        names: &[
            ".sh",
            ".bash",
            ".zsh",
            ".fish",
            ".nix",
            ".mk",
            ".pl",
            ".pm",
            ".tcl",
            ".cmake",
            "Makefile",
            "Dockerfile",
            "Containerfile",
            "justfile",
            "Justfile",
            "CMakeLists.txt",
            "PKGBUILD",
            ".bashrc",
            ".profile",
            ".envrc",
        ],
        line_comments: &["#"],
        block_comment: None,
        quotes: &[long_quote("\""), bare_quote("'")],
        keywords: "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM RUN USER VOLUME WORKDIR alias break case continue do done elif \
                   else end endif esac exec exit export fi for foreach function if in inherit let local my rec return set \
                   shift source sub then trap unset until use while with",
    },
    Language {
        names: &[
            ".toml",
            ".yaml",
            ".yml",
            ".ini",
            ".cfg",
            ".conf",
            ".properties",
            ".service",
            ".lock",
            ".gitignore",
            ".gitattributes",
            ".editorconfig",
            ".desktop",
        ],
        line_comments: &["#", ";"],
        block_comment: None,
        quotes: &[long_quote("\"\"\""), quote("\""), quote("'")],
        keywords: "false no null off on true yes",
    },
    Language {
        names: &[".json", ".jsonl", ".json5", ".webmanifest", ".ipynb"],
        line_comments: &["//"],
        block_comment: C_COMMENT,
        quotes: &[quote("\"")],
        keywords: "false null true",
    },
    Language {
        names: &[".html", ".htm", ".xml", ".svg", ".xhtml", ".plist", ".xsd"],
        line_comments: &[],
        block_comment: Some(("<!--", "-->")),
        quotes: &[quote("\"")],
        keywords: "",
    },
    Language {
        names: &[".css", ".scss", ".less"],
        line_comments: &[],
        block_comment: C_COMMENT,
        quotes: C_QUOTES,
        keywords: "important inherit initial none unset",
    },
    Language {
        names: &[".sql"],
        line_comments: &["--"],
        block_comment: C_COMMENT,
        quotes: &[bare_quote("'"), quote("\"")],
        keywords: "ADD ALTER AND AS ASC BEGIN BY CASE COMMIT CREATE DEFAULT DELETE DESC DISTINCT DROP ELSE END EXISTS FOREIGN FROM \
                   GROUP HAVING IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL ON OR ORDER PRIMARY REFERENCES \
                   RETURNING SELECT SET TABLE THEN UNION UNIQUE UPDATE VALUES VIEW WHEN WHERE WITH add alter and as asc begin \
                   by case commit create default delete desc distinct drop else end exists foreign from group having in index \
                   inner insert into is join key left like limit not null on or order primary references returning select set \
                   table then union unique update values view when where with",
    },
    Language {
        names: &[".lua", ".hs", ".elm", ".vhdl", ".ada"],
        line_comments: &["--"],
        block_comment: None,
        quotes: C_QUOTES,
        keywords: "and break case class data deriving do else elseif end false for function goto if import in infix instance let \
                   local module newtype nil not of or repeat return then true type until where while",
    },
    Language {
        names: &[".lisp", ".el", ".clj", ".cljs", ".scm", ".rkt", ".edn"],
        line_comments: &[";"],
        block_comment: None,
        quotes: &[long_quote("\"")],
        keywords: "cond def define defmacro defn defun do false fn if lambda let loop nil ns require set! true when",
    },
];

impl Language {
    /// The language of a file, by its name.
    pub(super) fn of_path(path: &str) -> Option<&'static Language> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_called = |ending: &&&str| match ending.strip_prefix('.') {
            Some(rest) => {
                name == **ending || name.rsplit_once('.').is_some_and(|(_, last)| last.eq_ignore_ascii_case(rest))
            }
            None => name == **ending,
        };
        LANGUAGES.iter().find(|language| language.names.iter().any(|ending| is_called(&ending)))
    }

    pub(super) fn is_keyword(&self, word: &str) -> bool {
        self.keywords.split_whitespace().any(|keyword| keyword == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_known_by_the_name_of_a_file() {
        let has_keyword = |path: &str, word: &str| Language::of_path(path).is_some_and(|known| known.is_keyword(word));
        assert!(has_keyword("src/main.rs", "fn") && has_keyword("MAIN.RS", "impl"));
        assert!(has_keyword("a/Dockerfile", "FROM") && has_keyword("tool.tar.py", "def"));
        assert!(!has_keyword("src/main.rs", "def"));
        for unknown in ["README", "rs", "a.rs/b", "", "x.unknown"] {
            assert_eq!(Language::of_path(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn no_name_stands_for_two_languages() {
        let mut all: Vec<&str> = LANGUAGES.iter().flat_map(|language| language.names).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
