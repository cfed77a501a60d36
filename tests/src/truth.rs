//! What the mock server really did.

use std::fmt;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub struct Truth(Value);

impl Truth {
    /// # Panics
    /// When the text is no JSON.
    pub fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_else(|error| panic!("truth is no JSON ({error}):\n{text}")))
    }

    /// A top-level count, such as `pushed`.
    pub fn count(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_else(|| panic!("no count `{name}` in the truth:\n{self}"))
    }

    /// How many deliveries a fault hit.
    pub fn deliveries(&self, fault: &str) -> u64 {
        let count = &self.0["deliveries"][fault];
        count.as_u64().unwrap_or_else(|| panic!("no count `deliveries.{fault}` in the truth:\n{self}"))
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}
