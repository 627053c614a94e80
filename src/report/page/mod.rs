//! The report that people hand in: one page of words, tables and pictures, as HTML or Markdown.

mod content;
mod html;
mod markdown;
mod playback;

pub use content::{Block, Page, Told};
pub use html::html;
pub use markdown::markdown;
pub use playback::Playback;
