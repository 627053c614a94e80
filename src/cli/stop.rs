//! Ctrl-C, or a batch system that ends the job: the first asks to stop, the second ends the program at
//! once, but not within a write.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};

/// It was asked for.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Held while rows are written.
static WRITING: Mutex<()> = Mutex::new(());
/// Looks whether a write has ended, and the pause between two: a disk that hangs is not waited for.
const LOOKS: (u32, Duration) = (20, Duration::from_millis(100));

/// Listens from now on.
///
/// # Errors
/// [`Error::Request`] when the system does not let it.
pub(super) fn watch() -> Result<()> {
    let heard = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            end();
        }
        // Nobody is left to be told when standard error is closed.
        let _ = writeln!(
            io::stderr(),
            "\nstopping: waiting for the end of the cases that run; Ctrl-C again ends at once, and \
             they are run again later"
        );
    };
    ctrlc::set_handler(heard)
        .map_err(|error| Error::request(format!("cannot watch for Ctrl-C: {error}"), "report this"))
}

fn end() {
    let (looks, pause) = LOOKS;
    for _ in 0..looks {
        let held = WRITING.try_lock();
        if held.is_ok() {
            // What is not written yet is run again by the same command.
            std::process::exit(130);
        }
        drop(held);
        std::thread::sleep(pause);
    }
    std::process::exit(130);
}

/// Whether to stop.
pub(super) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Writes without being ended within.
pub(super) fn whole<T>(write: impl FnOnce() -> T) -> T {
    let _held = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    write()
}
