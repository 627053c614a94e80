//! An allocator that counts, so that memory beyond what an input deserves is a failure.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that a reader may take a byte of the input.
const TIMES: usize = 10;
/// Bytes that a reader may take whatever the input: buffers of streams, tables, messages.
const BASE: usize = 4 << 20;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static BEFORE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted.
pub struct Counted;

fn grown(bytes: usize) {
    MOST.fetch_max(NOW.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grown(size);
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(at, layout, size) }
    }
}

/// An input begins.
pub fn start() {
    let now = NOW.load(Relaxed);
    BEFORE.store(now, Relaxed);
    MOST.store(now, Relaxed);
}

/// An input has been read.
pub fn check(input: usize) {
    let taken = MOST.load(Relaxed).saturating_sub(BEFORE.load(Relaxed));
    let may = TIMES * input + BASE;
    assert!(taken <= may, "{taken} bytes of memory for an input of {input}");
}
