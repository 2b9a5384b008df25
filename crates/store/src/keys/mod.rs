//! Keys of tables: a type per key, with a width that follows from its parts.
//!
//! A key is declared from typed parts, in the order in which they sort. It holds its bytes, big-endian one part after
//! another, so that comparing two keys is comparing bytes, and neither reading nor writing one allocates. Two keys of
//! equal width are still two types, in Rust and in the database, which refuses to open a table under another type.
//!
//! [`fixed`] declares the keys of fixed width, [`varying`] those that end in a need, a group or a task.

mod fixed;
mod nostr;
mod parts;
#[cfg(feature = "simulation")]
mod probe;
mod varying;

pub use fixed::*;
pub use nostr::*;
pub use parts::{KeyField, UserHash};
pub(crate) use parts::{SEQ_BYTES, seq_bytes, seq_from};
#[cfg(feature = "simulation")]
pub use probe::*;
pub use varying::*;

/// A key of a table: its type in Rust, and how bytes from elsewhere become one.
pub trait TableKey: redb::Key + 'static {
    /// The key of these bytes; none if no key has them.
    fn parse(bytes: &[u8]) -> Option<Self::SelfType<'_>>;
}

impl TableKey for &'static str {
    fn parse(bytes: &[u8]) -> Option<&str> {
        std::str::from_utf8(bytes).ok()
    }
}

/// A key that ends in a stamp.
pub(crate) trait StampedKey: TableKey + for<'a> redb::Value<SelfType<'a> = Self> {
    fn stamp_of(key: &Self) -> model::Stamp;
}

/// Declares keys of fixed width from their parts, and the ranges of keys that begin with some of them.
macro_rules! fixed_keys {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($part:ident: $type:ty),+ $(,)? } $($range:ident($($front:ident: $front_type:ty),+))*;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $name::WIDTH]);

        #[allow(missing_docs)]
        impl $name {
            /// The number of bytes.
            pub const WIDTH: usize = 0 $(+ <$type as KeyField>::WIDTH)+;

            #[allow(clippy::too_many_arguments)]
            pub fn new($($part: $type),+) -> $name {
                let mut bytes = [0; $name::WIDTH];
                let rest = bytes.as_mut_slice();
                $(let rest = crate::keys::parts::put_field($part, rest);)+
                debug_assert!(rest.is_empty());
                $name(bytes)
            }

            /// The bytes, which sort as the keys do.
            pub fn as_bytes(&self) -> &[u8; $name::WIDTH] {
                &self.0
            }

            $(pub fn $range($($front: $front_type),+) -> std::ops::RangeInclusive<$name> {
                let (mut first, mut last) = ([0; $name::WIDTH], [0xff; $name::WIDTH]);
                for bytes in [&mut first, &mut last] {
                    let rest = bytes.as_mut_slice();
                    $(let rest = crate::keys::parts::put_field($front, rest);)+
                    debug_assert!(rest.len() < $name::WIDTH);
                }
                let range = $name(first)..=$name(last);
                debug_assert!(true $(&& range.end().$front() == $front)+, "a range begins with the key's first parts");
                range
            })*
        }

        fixed_keys!(@fields $name [0] $($part: $type,)+);

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))$(.field(stringify!($part), &self.$part()))+.finish()
            }
        }

        impl redb::Value for $name {
            type SelfType<'a> = $name;
            type AsBytes<'a> = &'a [u8; $name::WIDTH];

            fn fixed_width() -> Option<usize> {
                Some($name::WIDTH)
            }

            fn from_bytes<'a>(data: &'a [u8]) -> $name where Self: 'a {
                // The database hands out exactly the width that it was told.
                let mut bytes = [0; $name::WIDTH];
                bytes.copy_from_slice(data);
                $name(bytes)
            }

            fn as_bytes<'a, 'b: 'a>(value: &'a $name) -> &'a [u8; $name::WIDTH] where Self: 'b {
                &value.0
            }

            fn type_name() -> redb::TypeName {
                redb::TypeName::new(concat!("anteroom key ", stringify!($name)))
            }
        }

        impl redb::Key for $name {
            fn compare(one: &[u8], other: &[u8]) -> std::cmp::Ordering {
                one.cmp(other)
            }
        }

        impl From<[u8; $name::WIDTH]> for $name {
            fn from(bytes: [u8; $name::WIDTH]) -> $name {
                $name(bytes)
            }
        }

        impl TableKey for $name {
            fn parse(bytes: &[u8]) -> Option<$name> {
                bytes.try_into().ok().map($name)
            }
        }
    )*};
    (@fields $name:ident [$at:expr]) => {};
    (@fields $name:ident [$at:expr] $part:ident: $type:ty, $($rest:tt)*) => {
        #[allow(missing_docs)]
        impl $name {
            pub fn $part(&self) -> $type {
                <$type as KeyField>::read(&self.0[$at..$at + <$type as KeyField>::WIDTH])
            }
        }
        fixed_keys!(@fields $name [$at + <$type as KeyField>::WIDTH] $($rest)*);
    };
}
pub(crate) use fixed_keys;

#[cfg(test)]
mod tests;
