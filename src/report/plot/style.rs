//! How pictures look: colors for light and dark, sizes of letters and lines. The only file to change
//! for another look.
//!
//! Plotters knows fixed colors only, so that every ink has one color of its own in light; a style
//! sheet in the picture replaces it by the dark one where the reader's screen is dark. Print stays
//! light. Hues differ for the three common kinds of color blindness (after Okabe and Ito, Color
//! universal design, 2008, darkened so that text in them can be read), and no picture tells anything
//! by color alone.

use std::collections::BTreeSet;
use std::fmt::Write;

/// Width of a picture, pixels: what a README, an issue and a printed column give it.
pub const WIDTH: f64 = 600.0;
/// Space around everything, pixels.
pub const MARGIN: f64 = 14.0;
/// Letters of a title, pixels.
pub const TITLE: f64 = 15.0;
/// Letters of a subtitle and of labels, pixels.
pub const LABEL: f64 = 11.5;
/// Letters of ticks and cells, pixels.
pub const SMALL: f64 = 10.5;
/// The smallest letters that are drawn at all, pixels.
pub const TINY: f64 = 8.5;
/// A line of data, pixels.
pub const LINE: f64 = 2.0;
/// A line of a frame or grid, pixels.
pub const HAIR: f64 = 0.8;
/// Fonts whose letters are as wide as [`super::letters`] says, then any.
pub const FONTS: &str = "Helvetica, Arial, 'Liberation Sans', sans-serif";

/// What a color means.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ink {
    /// Behind everything.
    Paper,
    /// Text, and what was measured.
    Text,
    /// Text and marks of less weight.
    Muted,
    /// Lines of grids.
    Grid,
    /// Bodies of nodes and empty cells.
    Panel,
    /// A series, by its place; the ninth is drawn as the first.
    Series(usize),
    /// A level of heat, 0 to [`HEAT_LEVELS`] - 1.
    Heat(usize),
    /// Text on a level of heat.
    OnHeat(usize),
}

/// Light and dark color of each series.
const SERIES: [(u32, u32); 8] = [
    (0x00_65A9, 0x5C_B8F0),
    (0xBF_4800, 0xFF_9155),
    (0x00_7A58, 0x35_CDA0),
    (0x97_3A78, 0xE8_9CC8),
    (0x80_6600, 0xE3_C33A),
    (0x5A_4FB5, 0xAC_A2FF),
    (0x6F_4E37, 0xD0_AA90),
    (0x4D_5B66, 0xA9_B7C2),
];

/// Light and dark color of each level of heat, from nothing to most.
const HEAT: [(u32, u32); HEAT_LEVELS] = [
    (0xF1_F5F9, 0x15_1D27),
    (0xDC_E8F4, 0x18_2E44),
    (0xC1_D7EC, 0x1B_4160),
    (0x9D_C2E2, 0x20_577F),
    (0x70_A6D4, 0x2B_709F),
    (0x46_87C2, 0x43_8DBE),
    (0x2A_68A8, 0x69_ACD8),
    (0x1A_4C88, 0x99_CBEA),
    (0x0F_3263, 0xD3_EAF8),
];

/// Levels of heat.
pub const HEAT_LEVELS: usize = 9;
/// The lowest level of heat for lines.
pub const LINE_HEAT: usize = 2;
/// From this level on, text on heat changes from dark to light (in light).
const DEEP: usize = 5;

impl Ink {
    /// The level of heat of a share of the most.
    pub fn heat(share: f64) -> Ink {
        Ink::Heat(level(share))
    }

    /// The level of heat of a share of the most, for lines, which have to stand out from the paper.
    pub fn line_heat(share: f64) -> Ink {
        let levels = (HEAT_LEVELS - 1 - LINE_HEAT) as f64;
        Ink::Heat(LINE_HEAT + (share.clamp(0.0, 1.0) * levels).round() as usize)
    }

    /// Text on the level of heat of a share of the most.
    pub fn on_heat(share: f64) -> Ink {
        Ink::OnHeat(level(share))
    }

    /// Colors in light and in dark, as 0xRRGGBB. No two inks have the same in light.
    pub fn colors(self) -> (u32, u32) {
        match self {
            Ink::Paper => (0xFF_FFFF, 0x0D_1117),
            Ink::Text => (0x1C_2128, 0xE6_EBF1),
            Ink::Muted => (0x59_636E, 0x9A_A5B1),
            Ink::Grid => (0xD9_DEE4, 0x2B_333D),
            Ink::Panel => (0xEE_F1F4, 0x1A_212A),
            Ink::Series(place) => SERIES[place % SERIES.len()],
            Ink::Heat(level) => HEAT[level.min(HEAT_LEVELS - 1)],
            Ink::OnHeat(level) if level < DEEP => (0x1C_2129, 0xE6_EBF0),
            Ink::OnHeat(_) => (0xFF_FFFE, 0x0D_1116),
        }
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Ink> {
        let plain = [Ink::Paper, Ink::Text, Ink::Muted, Ink::Grid, Ink::Panel];
        let series = (0..SERIES.len()).map(Ink::Series);
        let heat = (0..HEAT_LEVELS).map(Ink::Heat);
        let on_heat = [0, DEEP].map(Ink::OnHeat);
        plain.into_iter().chain(series).chain(heat).chain(on_heat)
    }
}

/// The level of heat of a share; anything above nothing shows.
fn level(share: f64) -> usize {
    if share.is_nan() || share <= 0.0 {
        return 0;
    }
    let level = (share * (HEAT_LEVELS - 1) as f64).round() as usize;
    level.clamp(1, HEAT_LEVELS - 1)
}

/// The style sheet that turns the inks dark where the reader's screen is.
pub fn dark_sheet(inks: &BTreeSet<Ink>) -> String {
    let mut out = String::from("@media screen and (prefers-color-scheme:dark){");
    let mut told = BTreeSet::new();
    for ink in inks {
        let (light, dark) = ink.colors();
        if told.insert(light) {
            let _ = write!(out, "[fill=\"#{light:06X}\"]{{fill:#{dark:06X}}}");
            let _ = write!(out, "[stroke=\"#{light:06X}\"]{{stroke:#{dark:06X}}}");
        }
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (Web Content Accessibility Guidelines 2.2).
    fn luminance(color: u32) -> f64 {
        let part = |shift: u32| {
            let value = f64::from(color >> shift & 255) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(16) + 0.7152 * part(8) + 0.0722 * part(0)
    }

    fn contrast(a: u32, b: u32) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn no_two_inks_share_a_light_color() {
        let lights: BTreeSet<u32> = Ink::all().map(|ink| ink.colors().0).collect();
        assert_eq!(lights.len(), Ink::all().count());
    }

    #[test]
    fn text_can_be_read_in_light_and_dark() {
        let paper = Ink::Paper.colors();
        for ink in [Ink::Text, Ink::Muted].into_iter().chain((0..SERIES.len()).map(Ink::Series)) {
            let colors = ink.colors();
            // 4.5 is the guidelines' least for text.
            assert!(contrast(colors.0, paper.0) >= 4.5, "{ink:?} in light");
            assert!(contrast(colors.1, paper.1) >= 4.5, "{ink:?} in dark");
        }
        for level in 0..HEAT_LEVELS {
            let (text, heat) = (Ink::OnHeat(level).colors(), Ink::Heat(level).colors());
            assert!(contrast(text.0, heat.0) >= 3.5, "text on heat {level} in light");
            assert!(contrast(text.1, heat.1) >= 3.5, "text on heat {level} in dark");
        }
    }
}
