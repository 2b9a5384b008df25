//! Renditions of honest, odd and hostile images.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::pixels::fit;
use crate::{DecodeLimits, OpenedImage, OriginalKind, RenderRefusal, Rendition, RenditionFormat, Variant};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use jpeg_encoder::{ColorType, Encoder};
use proptest::prelude::*;
use std::io::{Cursor, Write as _};

fn variants(names: &[&str]) -> Vec<Variant> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn render(bytes: &[u8], names: &[&str]) -> Result<Vec<Rendition>, RenderRefusal> {
    OpenedImage::open(bytes, &DecodeLimits::default())?.render(&variants(names))
}

fn sizes(renditions: &[Rendition]) -> Vec<(u32, u32)> {
    renditions.iter().map(|rendition| (rendition.width, rendition.height)).collect()
}

/// Red on the left, blue on the right, dark below.
fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let light = if y < height / 2 { 220 } else { 110 };
        if x < width / 2 { Rgb([light, 10, 10]) } else { Rgb([10, 10, light]) }
    })
}

fn file(image: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    DynamicImage::from(image.clone()).write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    bytes
}

fn jpeg(image: &RgbImage, prepare: impl FnOnce(&mut Encoder<&mut Vec<u8>>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, 90);
    prepare(&mut encoder);
    let (width, height) = (image.width() as u16, image.height() as u16);
    encoder.encode(image.as_raw(), width, height, ColorType::Rgb).unwrap();
    bytes
}

/// Exif with an orientation, and a text that nobody else should read.
fn exif(orientation: u16) -> Vec<u8> {
    let secret = b"52.5200N 13.4050E\0";
    let mut bytes = b"II*\0\x08\0\0\0\x02\0".to_vec();
    bytes.extend([0x12, 0x01, 3, 0, 1, 0, 0, 0]);
    bytes.extend([orientation.to_le_bytes(), [0, 0]].concat());
    bytes.extend([0x0e, 0x01, 2, 0]);
    bytes.extend((secret.len() as u32).to_le_bytes());
    bytes.extend(38_u32.to_le_bytes());
    bytes.extend([0; 4]);
    assert_eq!(bytes.len(), 38);
    bytes.extend(secret);
    bytes
}

fn decoded(rendition: &Rendition) -> RgbaImage {
    image::load_from_memory(&rendition.bytes).unwrap().into_rgba8()
}

fn is_near(pixel: &Rgba<u8>, wanted: [u8; 3]) -> bool {
    pixel.0.iter().zip(wanted).all(|(one, other)| one.abs_diff(other) < 24)
}

/// A PNG that says it has so many pixels of one bit, all of them zero.
fn flat_png(width: u32, height: u32, rows: u32) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let row = vec![0_u8; 1 + width.div_ceil(8) as usize];
    (0..rows).for_each(|_| packed.write_all(&row).unwrap());
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[1, 0, 0, 0, 0]].concat();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", header), (b"IDAT", packed.finish().unwrap()), (b"IEND", Vec::new())] {
        bytes.extend((data.len() as u32).to_be_bytes());
        let chunk = [&kind[..], &data].concat();
        bytes.extend(&chunk);
        bytes.extend(crc32fast::hash(&chunk).to_be_bytes());
    }
    bytes
}

#[test]
fn every_kind_becomes_every_variant_and_nothing_grows() {
    let image = picture(3000, 1500);
    for format in [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP, ImageFormat::Gif] {
        let made = render(&file(&image, format), &["thumbnail_256", "preview_1024", "full_2048"]).unwrap();
        assert_eq!(sizes(&made), [(256, 128), (1024, 512), (2048, 1024)], "{format:?}");
        for rendition in &made {
            assert_eq!(rendition.format, RenditionFormat::Jpeg, "{format:?}");
            let shown = decoded(rendition);
            assert_eq!(shown.dimensions(), (rendition.width, rendition.height));
            let at = |x: u32, y: u32| shown.get_pixel(rendition.width * x / 8, rendition.height * y / 8);
            assert!(is_near(at(1, 1), [220, 10, 10]) && is_near(at(7, 7), [10, 10, 110]), "{format:?}");
        }
    }
    let small = render(&file(&picture(40, 20), ImageFormat::Png), &["thumbnail_256"]).unwrap();
    assert_eq!(sizes(&small), [(40, 20)]);
}

#[test]
fn a_rendition_is_the_same_whatever_is_made_beside_it() {
    let bytes = file(&picture(2500, 1999), ImageFormat::Jpeg);
    let all = render(&bytes, &["full_2048", "preview_1024", "thumbnail_256"]).unwrap();
    for rendition in &all {
        let alone = render(&bytes, &[rendition.variant.name()]).unwrap();
        assert_eq!(alone, std::slice::from_ref(rendition));
    }
}

#[test]
fn images_are_turned_as_they_were_taken_and_say_no_more_where() {
    let image = picture(80, 40);
    for (orientation, size, top_left) in [
        (1, (80, 40), [220, 10, 10]),
        (3, (80, 40), [10, 10, 110]),
        (6, (40, 80), [110, 10, 10]),
        (8, (40, 80), [10, 10, 220]),
    ] {
        let bytes = jpeg(&image, |encoder| encoder.add_exif_metadata(&exif(orientation)).unwrap());
        let holds = |bytes: &[u8]| bytes.windows(8).any(|window| window == b"52.5200N");
        assert!(holds(&bytes));
        let made = render(&bytes, &["full_2048"]).unwrap();
        assert_eq!(sizes(&made), [size], "orientation {orientation}");
        assert!(is_near(decoded(&made[0]).get_pixel(4, 4), top_left), "orientation {orientation}");
        assert!(!holds(&made[0].bytes));
    }
}

#[test]
fn colours_of_another_profile_look_the_same_without_it() {
    let image = RgbImage::from_pixel(64, 64, Rgb([60, 180, 60]));
    let profile = moxcms::ColorProfile::new_display_p3().encode().unwrap();
    let plain = render(&jpeg(&image, |_| {}), &["thumbnail_256"]).unwrap();
    let wide = jpeg(&image, |encoder| encoder.add_icc_profile(&profile).unwrap());
    let made = render(&wide, &["thumbnail_256"]).unwrap();
    // The same numbers mean a green of which sRGB needs less red.
    let (plain, made) = (*decoded(&plain[0]).get_pixel(32, 32), *decoded(&made[0]).get_pixel(32, 32));
    assert!(is_near(&plain, [60, 180, 60]), "{plain:?}");
    assert!(made.0[0] + 30 < plain.0[0] && made.0[1] >= plain.0[1], "{made:?} {plain:?}");
    // A profile that cannot be read changes nothing.
    let bad = jpeg(&image, |encoder| encoder.add_icc_profile(&profile[..100]).unwrap());
    assert!(is_near(decoded(&render(&bad, &["thumbnail_256"]).unwrap()[0]).get_pixel(32, 32), [60, 180, 60]));
}

#[test]
fn what_can_be_seen_through_stays_so() {
    let clear = RgbaImage::from_fn(600, 300, |x, _| Rgba([200, 100, 0, if x < 300 { 0 } else { 255 }]));
    let opaque = RgbaImage::from_pixel(600, 300, Rgba([200, 100, 0, 255]));
    let made = |image: RgbaImage| {
        let mut bytes = Vec::new();
        DynamicImage::from(image).write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
        render(&bytes, &["thumbnail_256"]).unwrap().remove(0)
    };
    let clear = made(clear);
    assert_eq!((clear.format.media_type(), clear.width, clear.height), ("image/png", 256, 128));
    assert_eq!((decoded(&clear).get_pixel(9, 9).0[3], decoded(&clear).get_pixel(250, 9).0[3]), (0, 255));
    assert_eq!(made(opaque).format, RenditionFormat::Jpeg);
}

#[test]
fn a_header_is_believed_before_any_pixel_is_read() {
    let limits = DecodeLimits::default();
    let (pixels_max, side_max) = (limits.pixels_max, limits.side_max);
    // Few rows are there: whoever decoded them would say that it is damaged.
    for (width, height) in [(20_000, 20_000), (60_000, 60_000), (side_max + 1, 1), (1, side_max + 1), (8000, 8001)] {
        let refused = RenderRefusal::TooLarge { width, height, pixels_max, side_max };
        assert_eq!(render(&flat_png(width, height, 1), &["thumbnail_256"]), Err(refused));
    }
    assert!(matches!(render(&flat_png(8000, 8000, 1), &["thumbnail_256"]), Err(RenderRefusal::Damaged(_))));
    assert_eq!(sizes(&render(&flat_png(8000, 8000, 8000), &["thumbnail_256"]).unwrap()), [(256, 256)]);
    let few = DecodeLimits { decoder_bytes_max: 1000, ..limits };
    let opened = OpenedImage::open(&file(&picture(400, 400), ImageFormat::Png), &few);
    assert!(matches!(opened, Err(RenderRefusal::OverLimit)), "{opened:?}");
}

#[test]
fn what_has_no_preview_is_refused_by_what_it_is_not_by_its_name() {
    for bytes in [&b""[..], b"\0", b"PK\x03\x04", b"II*\0\x08\0\0\0", "по-русски".as_bytes()] {
        assert_eq!(render(bytes, &["thumbnail_256"]), Err(RenderRefusal::NotSupported));
        assert_eq!(OriginalKind::of(bytes), None);
    }
    // What draws or runs elsewhere is shown as the text that it is.
    for bytes in [&b"<svg xmlns='http://www.w3.org/2000/svg'/>"[..], b"push graphic-context"] {
        assert_eq!(OriginalKind::of(bytes), Some(OriginalKind::Text));
    }
    // Both a picture and a script: it is a picture, and the script is not in the rendition.
    let both = [file(&picture(30, 30), ImageFormat::Gif), b";alert(1)//".to_vec()].concat();
    assert_eq!(OriginalKind::of(&both), Some(OriginalKind::Gif));
    let made = render(&both, &["thumbnail_256"]).unwrap();
    assert!(!made[0].bytes.windows(5).any(|window| window == b"alert"));
    let cut = file(&picture(300, 300), ImageFormat::Png);
    assert!(matches!(render(&cut[..cut.len() / 2], &["thumbnail_256"]), Err(RenderRefusal::Damaged(_))));
    assert!(matches!(
        render(&flat_png(0, 9, 1), &["thumbnail_256"]),
        Err(RenderRefusal::Damaged(_) | RenderRefusal::Empty)
    ));
}

#[test]
fn of_documents_the_first_page_is_shown() {
    let text = "A plan of the lobby\n".repeat(20);
    let pdf = crate::text::page_of(text.as_bytes());
    assert_eq!(OriginalKind::of(&pdf), Some(OriginalKind::Pdf));
    let drawn = [text.as_bytes(), &pdf].map(|bytes| render(bytes, &["thumbnail_256", "full_2048"]).unwrap());
    assert_eq!(drawn[0], drawn[1], "a text is drawn as the page that it makes");
    assert_eq!(sizes(&drawn[0]), [(181, 256), (1447, 2048)]);
    let page = decoded(&drawn[0][1]);
    let dark_in = |rows: std::ops::Range<u32>| {
        rows.flat_map(|y| (0..1447).map(move |x| (x, y))).filter(|(x, y)| page.get_pixel(*x, *y).0[0] < 100).count()
    };
    assert!(dark_in(0..700) > 1000, "letters are black");
    assert_eq!(dark_in(1200..2048), 0, "below the text is nothing");
    for (bad, why) in [(&b"%PDF-1.7"[..], "damaged"), (&pdf[..100], "damaged")] {
        let refused = render(bad, &["thumbnail_256"]).unwrap_err().to_string();
        assert!(refused.contains(why) || refused.contains("no pixels"), "{refused}");
    }
}

#[test]
fn a_page_of_any_size_is_drawn_within_the_same_bounds() {
    let page = |media_box: &str| {
        let pdf = String::from_utf8(crate::text::page_of(b"x")).unwrap();
        render(pdf.replace("[0 0 595 842]", media_box).as_bytes(), &["thumbnail_256"])
    };
    assert_eq!(sizes(&page("[0 0 1000000 10000]").unwrap()), [(256, 3)]);
    assert_eq!(sizes(&page("[0 0 1 1]").unwrap()), [(256, 256)]);
    for odd in ["[0 0 1000000 1]", "[0 0 0 0]", "[9 9 1 1]", "[0 0 1e99 5]"] {
        let made = page(odd);
        let is_bounded = |made: &Vec<Rendition>| made[0].width <= 256 && made[0].height <= 256;
        assert!(made.as_ref().map_or(true, is_bounded), "{odd}: {made:?}");
    }
}

#[test]
fn of_an_animation_the_first_frame_is_shown() {
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut bytes);
    for colour in [[250, 0, 0, 255], [0, 250, 0, 255]] {
        encoder.encode_frame(image::Frame::new(RgbaImage::from_pixel(20, 20, Rgba(colour)))).unwrap();
    }
    drop(encoder);
    let made = render(&bytes, &["thumbnail_256"]).unwrap();
    assert!(is_near(decoded(&made[0]).get_pixel(9, 9), [250, 0, 0]));
}

#[test]
fn variants_have_one_name_each() {
    for name in ["thumbnail_256", "a_b_16", "full_8192"] {
        let variant: Variant = name.parse().unwrap();
        assert_eq!((variant.to_string().as_str(), variant.name()), (name, name));
    }
    for name in
        ["", "256", "_256", "thumbnail", "thumbnail_", "thumbnail_0256", "Thumbnail_256", "a_15", "a_8193", "a_+16"]
    {
        assert!(name.parse::<Variant>().is_err(), "{name}");
    }
    assert!(format!("{}_16", "a".repeat(62)).parse::<Variant>().is_err());
}

#[test]
fn sizes_keep_their_proportions_and_no_side_vanishes() {
    for (from, edge, to) in [
        ((4000, 3000), 256, (256, 192)),
        ((3000, 4000), 256, (192, 256)),
        ((256, 256), 256, (256, 256)),
        ((257, 1), 256, (256, 1)),
        ((10_000, 1), 16, (16, 1)),
        ((1000, 333), 100, (100, 33)),
        ((1000, 335), 100, (100, 34)),
    ] {
        assert_eq!(fit(from.0, from.1, edge), to, "{from:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is wrong with a file, somebody says so.
    #[test]
    fn damage_is_refused_or_shown(kind in 0..4_usize, at in 0.0..1.0_f64, byte: u8, cut in 0.5..1.5_f64) {
        let format = [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP, ImageFormat::Gif][kind];
        let mut bytes = file(&picture(33, 21), format);
        let place = ((bytes.len() - 1) as f64 * at) as usize;
        bytes[place] = byte;
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        let limits = DecodeLimits { pixels_max: 1 << 20, side_max: 4096, decoder_bytes_max: 16 << 20 };
        if let Ok(opened) = OpenedImage::open(&bytes, &limits) {
            let made = opened.render(&variants(&["thumbnail_16"])).unwrap();
            prop_assert!(made[0].width.max(made[0].height) <= 16);
        }
    }
}
