//! Values with stable numbers, whose places are used again: what is on its way in a network model.

use std::ops::{Index, IndexMut};

/// Values by number. A number is free again when its value is taken; who takes it uses it no more.
#[derive(Debug, Default)]
pub struct Pool<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Pool<T> {
    /// Nothing, yet.
    pub fn new() -> Pool<T> {
        Pool { values: Vec::new(), free: Vec::new() }
    }

    /// Keeps a value and gives its number.
    #[inline]
    pub fn keep(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.values[number as usize] = value;
                number
            }
            None => {
                self.values.push(value);
                self.values.len() as u32 - 1
            }
        }
    }

    /// Takes a value out.
    #[inline]
    pub fn take(&mut self, number: u32) -> T {
        self.free.push(number);
        self.values[number as usize]
    }

    /// How many values are kept.
    pub fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Index<u32> for Pool<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}

impl<T> IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.values[number as usize]
    }
}
