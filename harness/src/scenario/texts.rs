//! Many short texts in one buffer: millions of names without an allocation each.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    buffer: String,
    /// Where each text ends in the buffer.
    ends: Vec<u64>,
}

impl Texts {
    pub fn push(&mut self, text: &str) {
        self.buffer.push_str(text);
        self.ends.push(self.buffer.len() as u64);
    }

    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// `at` must be below [`Self::count`].
    pub fn get(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.buffer[start as usize..self.ends[at] as usize]
    }

    /// Gives back what was set aside for more.
    pub fn shrink(&mut self) {
        self.buffer.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}
