//! `simulate constants`: the calibration as a table.

use clap::Args;

use super::arguments::{ConstantsFrom, Form};
use super::load;
use super::output::{Failure, Outcome, Output};
use super::predict::table_format;
use crate::error::Error;
use crate::fabric::DeviceClass;
use crate::report::assumptions::constants;
use crate::suggestion::known;

/// Options of `constants`.
#[derive(Debug, Args)]
pub(super) struct Constants {
    /// Only this device.
    device: Option<String>,
    /// Where they come from.
    #[command(flatten)]
    constants: ConstantsFrom,
    /// Form of the table.
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Form,
}

/// Prints it, or one device of it.
pub(super) fn run(options: &Constants, output: &mut Output) -> Result<Outcome, Failure> {
    let calibration = load::calibration(&options.constants)?;
    if let Some(device) = &options.device {
        let all = DeviceClass::ALL.iter().flat_map(|entry| calibration.names(entry.0));
        let names: Vec<&str> = all.collect();
        if !names.contains(&device.as_str()) {
            return Err(Error::request(
                format!("the calibration knows no device `{device}`"),
                known(device, "known", names),
            )
            .into());
        }
    }
    let table = constants(&calibration, options.device.as_deref());
    output.text(&table.write(table_format(options.format)))?;
    Ok(Outcome::Done)
}
