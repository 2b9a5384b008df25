//! Shapes that the OpenAPI document shares: what can be said of a text before it is sent.

use model::Nanos;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::{IntoParams, ToSchema};

/// An id that a client or an application chooses.
#[derive(ToSchema)]
#[schema(
    value_type = String,
    pattern = r"^(?!([0-9a-fA-F]{32}|[0-9a-fA-F]{64}|\.|\.\.|me)$)[!$&'()*+,.0-9:;=@A-Z\[\]^_`a-z{|}~-]{1,128}$",
    example = "msg-1"
)]
#[allow(dead_code, reason = "only its shape is used")]
pub(crate) struct ChosenId(String);

/// The id of an event.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = "^[0-9a-f]{32}$", example = "3be9f54074dbd655150de80e02aedb4e")]
#[allow(dead_code, reason = "only its shape is used")]
pub(crate) struct EventIdText(String);

/// A thread or message: by the id that a client chose, or by its event id.
#[derive(ToSchema)]
#[schema(
    value_type = String,
    pattern = r"^([0-9a-f]{32}|(?!([0-9a-fA-F]{32}|[0-9a-fA-F]{64}|\.|\.\.|me)$)[!$&'()*+,.0-9:;=@A-Z\[\]^_`a-z{|}~-]{1,128})$",
    example = "tea"
)]
#[allow(dead_code, reason = "only its shape is used")]
pub(crate) struct NameOrIdText(String);

/// A body with which everything that was read may be sent back: it takes what only the node says, and ignores it. After the
/// struct come the names of what is ignored: `message` for what the node says of a message, `thread` for what it says of a
/// thread, and perhaps others.
macro_rules! body_to_send_back {
    (@fields [$($ignored:ident)*] $(#[$attribute:meta])* $visibility:vis struct $name:ident { $($fields:tt)* }) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($fields)*
            $(
                #[serde(default)]
                #[schema(ignore)]
                #[expect(dead_code, reason = "it is taken, and nothing else")]
                $ignored: serde::de::IgnoredAny,
            )*
        }
    };
    (message [$($more:ident)*] $($body:tt)*) => {
        $crate::schemas::body_to_send_back! {
            @fields [ts reactions replies deleted version created_at updated_at state event $($more)*] $($body)*
        }
    };
    (thread [$($more:ident)*] $($body:tt)*) => {
        $crate::schemas::body_to_send_back! {
            @fields [created_at updated_at created_ts updated_ts deleted last_message unread event $($more)*] $($body)*
        }
    };
}
pub(crate) use body_to_send_back;

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Where the page before ended.
    #[param(pattern = "^([0-9]{1,19}-[0-9a-f]{32})?$")]
    pub(crate) cursor: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<usize>,
}

/// A whole number that may be written as `182.0`, which is the same number in JSON.
pub(crate) fn whole<'de, D: serde::Deserializer<'de>>(number: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(number)? else { return Ok(None) };
    let exact = |float: &f64| float.fract() == 0.0 && (0.0..=WHOLE_FLOAT_MAX).contains(float);
    let whole = number.as_u64().or_else(|| number.as_f64().filter(exact).map(|float| float as u64));
    whole.map(Some).ok_or_else(|| serde::de::Error::custom(format!("{number} is not a whole number in range")))
}

/// Up to here every whole number has a float of its own.
const WHOLE_FLOAT_MAX: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        #[derive(serde::Deserialize)]
        struct Sent {
            #[serde(default, deserialize_with = "super::whole")]
            number: Option<u64>,
        }
        for (text, expected) in [
            ("{}", Some(None)),
            (r#"{"number": null}"#, Some(None)),
            (r#"{"number": 182}"#, Some(Some(182))),
            (r#"{"number": 182.0}"#, Some(Some(182))),
            (r#"{"number": 182.5}"#, None),
            (r#"{"number": -1}"#, None),
            (r#"{"number": 1e300}"#, None),
            (r#"{"number": "1"}"#, None),
        ] {
            let read = serde_json::from_str::<Sent>(text).ok().map(|sent| sent.number);
            assert_eq!(read, expected, "{text}");
        }
    }
}

/// A time that a client wrote, as RFC 3339 has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeText(pub(crate) Nanos);

impl<'de> serde::Deserialize<'de> for TimeText {
    fn deserialize<D: serde::Deserializer<'de>>(text: D) -> Result<TimeText, D::Error> {
        let text = String::deserialize(text)?;
        let time = OffsetDateTime::parse(&text, &Rfc3339)
            .map_err(|_| serde::de::Error::custom(format!("{text:?} is not a time such as 2026-03-21T17:04:09.5Z")))?;
        // Nothing was written before 1970 or after 2554.
        Ok(TimeText(Nanos(u64::try_from(time.unix_timestamp_nanos().max(0)).unwrap_or(u64::MAX))))
    }
}
