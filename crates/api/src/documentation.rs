//! What the OpenAPI document says of a route beside its method and path.
//!
//! A row of the route table carries one [`Doc`]. Parameters in the path are known from the path; schemas come from the
//! types of bodies and answers, with their doc comments.

use server::Problem;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Components, Paths};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{IntoParams, PartialSchema as _, ToSchema};

const JSON: &str = "application/json";
const PROBLEM_JSON: &str = "application/problem+json";

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

    /// A header that may be sent.
    pub(crate) fn header(mut self, name: &str, description: &str) -> Doc {
        let text_or_null = SchemaType::from_iter([Type::String, Type::Null]);
        let header = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(ObjectBuilder::new().schema_type(text_or_null)));
        self.parameters.push(header.build());
        self
    }

    /// The body, as JSON.
    pub(crate) fn body<T: ToSchema>(mut self) -> Doc {
        self.remember::<T>();
        self.body = Some(reference::<T>());
        self
    }

    /// An answer with a body, as JSON.
    pub(crate) fn answers<T: ToSchema>(self, status: u16) -> Doc {
        self.answers_when::<T>(status, "")
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
        self.responses.push(("204".to_owned(), Response::new("")));
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
        let response = ResponseBuilder::new().description("").content(PROBLEM_JSON, content);
        self.responses.push((status.to_owned(), response.build()));
        self
    }

    /// A route that takes no key and is never refused.
    pub(crate) fn without_key(mut self) -> Doc {
        self.needs_key = false;
        self
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
    pub(crate) fn enter(self, method: HttpMethod, path: &str, paths: &mut Paths, components: &mut Components) {
        let doc = if self.needs_key { self.problem("4XX") } else { self };
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
        HttpMethod::Delete => "delete",
        _ => "get",
    };
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(method).chain(words.filter(|word| *word != "v1")).collect::<Vec<_>>().join("_")
}
