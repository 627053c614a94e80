//! Answers -> what people read.

pub mod ask;
pub mod assumptions;
pub mod calls;
pub mod choose;
pub mod compare;
pub mod dispatch;
pub mod dot;
pub mod experts;
pub mod explain;
pub mod faults;
pub mod first_screen;
pub mod hash;
mod in_place;
pub mod json;
pub mod machine;
pub mod markup;
pub mod memory;
pub mod number;
pub mod page;
pub mod place;
pub mod plot;
pub mod sizes;
pub mod spread;
pub mod step;
pub mod table;
pub mod trace;
mod variables;

pub use first_screen::first_screen;
