//! Numbers in as many bytes as they need, seven bits in each, the lowest first.

use model::reader::{ByteReader, TooShort};

/// A number of 64 bits takes no more.
const BYTES_MAX: u32 = 10;

pub(crate) fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn get_varint(reader: &mut ByteReader<'_>) -> Result<u64, TooShort> {
    let mut number = 0_u64;
    for place in 0..BYTES_MAX {
        let byte = reader.u8()?;
        let bits = u64::from(byte & 0x7f);
        let placed = bits << (7 * place);
        // Bits that do not fit, or a last byte of nothing, are not what was written.
        if placed >> (7 * place) != bits || byte == 0 && place > 0 {
            return Err(TooShort);
        }
        number |= placed;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(TooShort)
}

/// A number of 32 bits.
pub(crate) fn get_number(reader: &mut ByteReader<'_>) -> Result<u32, TooShort> {
    u32::try_from(get_varint(reader)?).map_err(|_| TooShort)
}

/// By how much a number differs from another that is known: few bytes if by little, in either direction.
pub(crate) fn put_difference(number: u64, from: u64, out: &mut Vec<u8>) {
    let difference = number.wrapping_sub(from);
    put_varint((difference << 1) ^ (difference.cast_signed() >> 63).cast_unsigned(), out);
}

/// The number of which [`put_difference`] wrote this.
pub(crate) fn add_difference(written: u64, from: u64) -> u64 {
    from.wrapping_add((written >> 1) ^ (written & 1).wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Option<(u64, usize)> {
        let mut reader = ByteReader::new(bytes);
        let number = get_varint(&mut reader).ok()?;
        Some((number, reader.rest().len()))
    }

    proptest! {
        #[test]
        fn every_number_comes_back_and_takes_as_many_bytes_as_it_needs(shift in 0..64_u32, number: u64) {
            let number = number >> shift;
            let mut bytes = Vec::new();
            put_varint(number, &mut bytes);
            prop_assert_eq!(bytes.len() as u32, (64 - number.leading_zeros()).max(1).div_ceil(7));
            prop_assert_eq!(read(&[bytes.as_slice(), &[9]].concat()), Some((number, 1)));
            prop_assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        }

        #[test]
        fn there_is_one_way_to_write_a_number(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Some((number, left)) = read(&bytes) {
                let mut again = Vec::new();
                put_varint(number, &mut again);
                prop_assert_eq!(again.as_slice(), &bytes[..bytes.len() - left]);
            }
        }
    }

    #[test]
    fn numbers_that_are_too_large_are_refused() {
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), Some((u64::MAX, 0)));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), None);
        assert_eq!(read(&[0xff; 11]), None);
        assert!(get_number(&mut ByteReader::new(&[0xff, 0xff, 0xff, 0xff, 0x1f])).is_err());
        assert_eq!(get_number(&mut ByteReader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f])).ok(), Some(u32::MAX));
    }
}
