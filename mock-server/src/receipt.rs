//! Receipts: a recipient tells the author that a message has arrived. Passed on at once or not at all.

use std::num::NonZeroU64;

use crate::assign::FaultKind;
use crate::faults::Fault;
use crate::hub::Hub;
use crate::note::Note;

/// A receipt reaches nobody.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiptDrop;

impl FaultKind for ReceiptDrop {
    fn of(fault: &Fault) -> Option<(Self, NonZeroU64)> {
        match *fault {
            Fault::ReceiptDrop { every } => Some((ReceiptDrop, every)),
            _ => None,
        }
    }
}

impl Hub {
    /// Takes a receipt on; the name of who sent it has been checked.
    pub(crate) fn receipt(&mut self, receipt: &Note) {
        self.counters.receipts.one();
        self.receipt_faults.see(1);
        let mut devices = self.registry.connected(&receipt.to).peekable();
        let lost = devices.peek().and_then(|_| self.receipt_faults.choose(|_| true));
        if let Some(fault) = lost {
            self.counters.committed(fault.id, 0);
            return;
        }
        let pushed = devices.filter(|device| device.outbox.push(receipt.frame(device.format), 1).is_ok());
        self.counters.receipts_pushed.add(pushed.count() as u64);
    }
}

#[cfg(test)]
#[path = "receipt_tests.rs"]
mod tests;
