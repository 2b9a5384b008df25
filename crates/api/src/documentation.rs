//! What the OpenAPI document says of a route beside its method and path.
//!
//! A row of the route table carries one [`Doc`]. Parameters in the path are known from the path; schemas come from the
//! types of bodies and answers, with their doc comments.

use http::Method;
use server::Problem;
use server::routes::RouteConditions;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Components, Paths};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{IntoParams, PartialSchema as _, ToSchema};

const JSON: &str = "application/json";
const PROBLEM_JSON: &str = "application/problem+json";
const BYTES: &str = "application/octet-stream";

const USER_ID: &str = "X-User-ID";
const USER_SIGNATURE: &str = "X-User-Signature";
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const ETAG: &str = "ETag";
/// What has no end, and so no tag.
const STREAM: &str = "text/event-stream";

/// What an answer means where nothing else is said.
fn answer_text(status: u16) -> &'static str {
    match status {
        201 => "It was created, and is durable",
        202 => "It was begun",
        204 => "It was done, and is durable; there is no body",
        304 => "It is what the caller has; there is no body",
        _ => "The answer",
    }
}

/// What a problem of a status means.
fn problem_text(status: &str) -> &'static str {
    match status {
        "404" => "There is no such thing, or the caller may not see it",
        "409" => "It contradicts what is there",
        "412" => "It is not what If-Match names any more; read it again",
        "429" => "The caller's limit of requests is reached; wait as long as Retry-After says",
        "503" => "The node cannot do it now; wait as long as Retry-After says",
        _ => "The request is refused: `detail` says why, `action` what to do",
    }
}

/// The documentation of a route.
pub(crate) struct Doc {
    tag: &'static str,
    summary: &'static str,
    parameters: Vec<Parameter>,
    /// Parameters in the path that are not just any text.
    path_schemas: Vec<(&'static str, RefOr<Schema>)>,
    body: Option<RefOr<Schema>>,
    responses: Vec<(String, Response)>,
    needs_key: bool,
    takes_any_query: bool,
    compares: bool,
    /// A description of a body of any type.
    any_body: Option<&'static str>,
    /// The media type of such a body.
    body_media: &'static str,
    /// Whether answers are sent as they are: bytes of files are asked for by ranges.
    pub(crate) is_uncompressed: bool,
    pub(crate) body_factor: usize,
    schemas: Vec<(String, RefOr<Schema>)>,
}

/// A route under a heading of the reference, and what it does in one line.
pub(crate) fn doc(tag: &'static str, summary: &'static str) -> Doc {
    Doc {
        tag,
        summary,
        parameters: Vec::new(),
        path_schemas: Vec::new(),
        body: None,
        responses: Vec::new(),
        needs_key: true,
        takes_any_query: false,
        compares: false,
        any_body: None,
        body_media: BYTES,
        is_uncompressed: false,
        body_factor: 1,
        schemas: Vec::new(),
    }
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

impl Doc {
    fn remember<T: ToSchema>(&mut self) {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
    }

    /// A parameter of the path that is a number.
    pub(crate) fn path_number(mut self, name: &'static str) -> Doc {
        self.path_schemas.push((name, u64::schema()));
        self
    }

    /// A parameter of the path with a schema of its own.
    pub(crate) fn path<T: ToSchema>(mut self, name: &'static str) -> Doc {
        self.remember::<T>();
        self.path_schemas.push((name, reference::<T>()));
        self
    }

    /// The parameters of the query string.
    pub(crate) fn query<T: IntoParams>(mut self) -> Doc {
        self.parameters.extend(T::into_params(|| Some(ParameterIn::Query)));
        self
    }

    /// A route whose bodies may be so many times as large as others.
    pub(crate) fn larger_body(mut self, factor: usize) -> Doc {
        self.body_factor = factor;
        self
    }

    /// A route kept for clients of ProgressDB, which may send parameters that nobody reads.
    pub(crate) fn any_query(mut self) -> Doc {
        self.takes_any_query = true;
        self
    }

    /// A route that changes what the `GET` of its path shows, and honours `If-Match`.
    pub(crate) fn compares(mut self) -> Doc {
        self.compares = true;
        self
    }

    /// Which conditional requests the route takes. What can be read has a tag, unless it is a stream, or for clients of
    /// ProgressDB, which know nothing of tags.
    pub(crate) fn conditions(&self, method: &Method) -> RouteConditions {
        let is_whole = |response: &Response| !response.content.contains_key(STREAM);
        let is_tagged = self.responses.iter().any(|(status, response)| status == "200" && is_whole(response));
        match *method == Method::GET {
            true if is_tagged && !self.takes_any_query => RouteConditions::Tagged,
            false if self.compares => RouteConditions::Compared,
            _ => RouteConditions::Untagged,
        }
    }

    /// What these conditions mean for requests and answers.
    fn with_conditions(mut self, conditions: RouteConditions) -> Doc {
        let tag =
            |description: &str| HeaderBuilder::new().schema(Some(String::schema())).description(Some(description));
        match conditions {
            RouteConditions::Untagged => self,
            RouteConditions::Tagged => {
                let header = tag("Changes whenever the answer does").build();
                let unchanged = ResponseBuilder::new().description(answer_text(304)).header(ETAG, header.clone());
                for (_, response) in self.responses.iter_mut().filter(|(status, _)| status == "200") {
                    response.headers.insert(ETAG.to_owned(), header.clone().into());
                }
                self.responses.push(("304".to_owned(), unchanged.build()));
                self.header("If-None-Match", "Tags of answers that the caller has; if it would be one of them, 304")
            }
            RouteConditions::Compared => self
                .header("If-Match", "Do it only if the GET of this path would answer with one of these tags, else 412")
                .problem("412"),
        }
    }

    /// The parameters that the query string may have; none if it may have any.
    pub(crate) fn query_names(&self) -> Option<Vec<String>> {
        let in_query = self.parameters.iter().filter(|parameter| parameter.parameter_in == ParameterIn::Query);
        (!self.takes_any_query).then(|| in_query.map(|parameter| parameter.name.clone()).collect())
    }

    /// A header that may be sent.
    pub(crate) fn header(self, name: &str, description: &str) -> Doc {
        let text_or_null = SchemaType::from_iter([Type::String, Type::Null]);
        self.header_of(name, description, ObjectBuilder::new().schema_type(text_or_null))
    }

    fn header_of(mut self, name: &str, description: &str, schema: ObjectBuilder) -> Doc {
        let header = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(schema));
        self.parameters.push(header.build());
        self
    }

    /// The header with the hash that a body must have.
    pub(crate) fn digest_header(self) -> Doc {
        self.header("Content-Digest", "The SHA-256 that the bytes must have, as `sha-256=:BASE64:`")
    }

    /// A header that has to be sent: a number of bytes.
    pub(crate) fn number_header(mut self, name: &str, description: &str) -> Doc {
        let header = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::True)
            .description(Some(description))
            .schema(Some(u64::schema()));
        self.parameters.push(header.build());
        self
    }

    /// The body, as JSON.
    pub(crate) fn body<T: ToSchema>(mut self) -> Doc {
        self.remember::<T>();
        self.body = Some(reference::<T>());
        self
    }

    /// The body, of any type.
    pub(crate) fn any_body(mut self, description: &'static str) -> Doc {
        self.any_body = Some(description);
        self
    }

    /// The same, of one media type.
    pub(crate) fn body_of(mut self, media: &'static str, description: &'static str) -> Doc {
        self.body_media = media;
        self.any_body(description)
    }

    /// A route whose answers are not compressed.
    pub(crate) fn uncompressed(mut self) -> Doc {
        self.is_uncompressed = true;
        self
    }

    /// An answer with a body, as JSON.
    pub(crate) fn answers<T: ToSchema>(self, status: u16) -> Doc {
        self.answers_when::<T>(status, answer_text(status))
    }

    /// The same, with when it is given.
    pub(crate) fn answers_when<T: ToSchema>(mut self, status: u16, description: &str) -> Doc {
        self.remember::<T>();
        let content = ContentBuilder::new().schema(Some(reference::<T>())).build();
        let response = ResponseBuilder::new().description(description).content(JSON, content);
        self.responses.push((status.to_string(), response.build()));
        self
    }

    /// An answer without a body.
    pub(crate) fn answers_nothing(mut self) -> Doc {
        self.responses.push(("204".to_owned(), Response::new(answer_text(204))));
        self
    }

    /// An answer that is not JSON of a known shape.
    pub(crate) fn answers_media(mut self, description: &str, media: &str) -> Doc {
        let response = ResponseBuilder::new().description(description).content(media, ContentBuilder::new().build());
        self.responses.push(("200".to_owned(), response.build()));
        self
    }

    /// A problem of this status; `4XX` where nothing else is said.
    pub(crate) fn problem(mut self, status: &str) -> Doc {
        self.remember::<Problem>();
        let content = ContentBuilder::new().schema(Some(reference::<Problem>())).build();
        let mut response = ResponseBuilder::new().description(problem_text(status)).content(PROBLEM_JSON, content);
        if ["429", "503"].contains(&status) {
            let seconds = HeaderBuilder::new().schema(Some(u64::schema())).description(Some("Seconds to wait"));
            response = response.header("Retry-After", seconds.build());
        }
        self.responses.push((status.to_owned(), response.build()));
        self
    }

    /// A route that takes no key and is never refused.
    pub(crate) fn without_key(mut self) -> Doc {
        self.needs_key = false;
        self
    }

    /// What is true of every route that takes a key.
    fn with_what_every_key_means(self, method: &HttpMethod) -> Doc {
        let user = "The user that the key acts for. A frontend key proves it with X-User-Signature.";
        let signature = "An HMAC-SHA256 of the user id, from POST /v1/_sign. For frontend keys.";
        let text = |most| ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(most));
        let mut doc = self.header_of(USER_ID, user, text(128)).header_of(USER_SIGNATURE, signature, text(255));
        if *method != HttpMethod::Get {
            let again = "The same request with the same key within 24 hours is answered as the first time, and does \
                nothing again.";
            doc = doc.header_of(IDEMPOTENCY_KEY, again, text(255));
        }
        doc.problem("429").problem("503").problem("4XX")
    }

    fn path_parameters(&self, path: &str) -> Vec<Parameter> {
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let parameter = |name: &str| {
            let known = self.path_schemas.iter().find(|(other, _)| *other == name);
            let schema = known.map_or_else(String::schema, |(_, schema)| schema.clone());
            let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
            parameter.required(Required::True).schema(Some(schema)).build()
        };
        names.map(parameter).collect()
    }

    /// Enters the route into a document.
    pub(crate) fn enter(self, method: &Method, path: &str, paths: &mut Paths, components: &mut Components) {
        let conditions = self.conditions(method);
        let method = match *method {
            Method::POST => HttpMethod::Post,
            Method::PUT => HttpMethod::Put,
            Method::PATCH => HttpMethod::Patch,
            Method::DELETE => HttpMethod::Delete,
            _ => HttpMethod::Get,
        };
        let doc = self.with_conditions(conditions);
        let doc = if doc.needs_key { doc.with_what_every_key_means(&method) } else { doc };
        let mut parameters = doc.path_parameters(path);
        parameters.extend(doc.parameters);
        let mut operation = OperationBuilder::new()
            .tag(doc.tag)
            .summary(Some(doc.summary))
            .operation_id(Some(operation_id(&method, path)))
            .parameters((!parameters.is_empty()).then_some(parameters));
        if let Some(schema) = doc.body {
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let body = RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True));
            operation = operation.request_body(Some(body.build()));
        }
        if let Some(description) = doc.any_body {
            let bytes =
                ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("binary".into())));
            let content = ContentBuilder::new().schema(Some(bytes)).build();
            let body = RequestBodyBuilder::new().description(Some(description)).content(doc.body_media, content);
            operation = operation.request_body(Some(body.required(Some(Required::True)).build()));
        }
        for (status, response) in doc.responses {
            operation = operation.response(status, response);
        }
        if !doc.needs_key {
            operation = operation.security(SecurityRequirement::default());
        }
        paths.add_path_operation(path, vec![method], operation.build());
        components.schemas.extend(doc.schemas);
    }
}

/// A name for an operation that generated clients can use: `get_threads_thread_messages`.
fn operation_id(method: &HttpMethod, path: &str) -> String {
    let method = match method {
        HttpMethod::Post => "post",
        HttpMethod::Put => "put",
        HttpMethod::Patch => "patch",
        HttpMethod::Delete => "delete",
        _ => "get",
    };
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(method).chain(words.filter(|word| *word != "v1")).collect::<Vec<_>>().join("_")
}
