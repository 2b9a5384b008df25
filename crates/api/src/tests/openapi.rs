//! The OpenAPI document, line by line: what clients are generated from changes on purpose only.

use crate::openapi;
use expect_test::expect_file;
use serde_json::Value;
use std::fmt::Write as _;

/// One line for each operation and parameter, body and answer of it, and one for each schema.
fn described(document: &Value) -> String {
    let mut text = String::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let (id, tags, summary) = (&operation["operationId"], &operation["tags"], &operation["summary"]);
            let _ = writeln!(text, "{} {path} {id} {tags} {summary} {}", method.to_uppercase(), operation["security"]);
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let _ = writeln!(text, "    parameter {parameter}");
            }
            if !operation["requestBody"].is_null() {
                let _ = writeln!(text, "    body {}", operation["requestBody"]);
            }
            for (status, response) in operation["responses"].as_object().expect("responses") {
                let _ = writeln!(text, "    {status} {response}");
            }
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        let _ = writeln!(text, "schema {name} {schema}");
    }
    let _ = writeln!(text, "security {} {}", document["security"], document["components"]["securitySchemes"]);
    text
}

#[test]
#[cfg(feature = "search")]
fn the_document_says_what_it_said() {
    let document = serde_json::to_value(openapi()).expect("a document");
    expect_file!["openapi.txt"].assert_eq(&described(&document));
}

#[test]
fn every_body_that_is_sent_has_an_example_and_so_have_the_main_answers() {
    let document = serde_json::to_value(openapi()).expect("a document");
    let schemas = &document["components"]["schemas"];
    let mut named: Vec<&str> = vec!["Message", "Thread", "Problem"];
    for (_, item) in document["paths"].as_object().expect("paths") {
        for (_, operation) in item.as_object().expect("operations") {
            let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
            named.extend(body.as_str().and_then(|reference| reference.rsplit('/').next()));
        }
    }
    assert!(named.len() > 25, "{named:?}");
    for name in named {
        let (schema, example) = (&schemas[name], &schemas[name]["example"]);
        let fields = example.as_object().unwrap_or_else(|| panic!("{name} has no example"));
        // What it shows are fields that there are, and all that must be there.
        for field in fields.keys() {
            assert!(schema["properties"][field].is_object(), "{name} has no field {field}");
        }
        for field in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(fields.contains_key(field), "{name} needs {field}");
        }
    }
}
