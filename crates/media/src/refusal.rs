//! Why there is no rendition of something.

/// Why there is no rendition. All of these are permanent: the same bytes will be refused again.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RenderRefusal {
    #[error("it is nothing that previews are made of (JPEG, PNG, WebP, GIF, PDF, text)")]
    NotSupported,
    #[error("it has {width} × {height} pixels; at most {pixels_max}, and {side_max} a side, are decoded")]
    TooLarge { width: u32, height: u32, pixels_max: u64, side_max: u32 },
    #[error("it has no pixels")]
    Empty,
    #[error("it is protected by a password, so there is no preview of it")]
    Locked,
    #[error("it needs more memory to be decoded than it may have")]
    OverLimit,
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("the rendition could not be made: {0}")]
    Failed(String),
}

impl From<image::ImageError> for RenderRefusal {
    fn from(error: image::ImageError) -> RenderRefusal {
        match error {
            image::ImageError::Limits(_) => RenderRefusal::OverLimit,
            image::ImageError::Unsupported(_) => RenderRefusal::NotSupported,
            other => RenderRefusal::Damaged(other.to_string()),
        }
    }
}
