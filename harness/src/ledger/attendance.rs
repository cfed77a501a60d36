//! When one device was there: only then does a message that did not come prove anything. An absence can be made up for
//! by pulling what was missed.

/// Counts the comings and goings of a receiver: even while it is there, odd for what was sent while it was away and came
/// by a pull. While two numbers are equal, it neither came nor went in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Absences(pub u32);

impl Absences {
    pub fn is_away(self) -> bool {
        !self.0.is_multiple_of(2)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attendance {
    absences: Absences,
    /// Absences behind the first and up to the second were made up for; those before it never can be.
    made_up: (Absences, Absences),
    /// Shown at the end of the drain that everything sent to it before has been read.
    proven_at_end: bool,
}

impl Attendance {
    /// Traffic begins; before it nothing can have been missed. A device that was not there is not known to the platform
    /// either, which keeps nothing for it.
    pub fn begin(&mut self, present: bool) {
        self.absences = Absences(2 * u32::from(!present));
        self.made_up = (self.absences, self.absences);
    }

    /// From now on, what happens before the next arrival proves nothing.
    pub fn away(&mut self) {
        self.absences.0 += 2;
        self.proven_at_end = false;
    }

    /// Everything that was sent while the device was away has been pulled.
    pub fn made_up(&mut self) {
        self.made_up.1 = self.absences;
    }

    /// Everything sent to the device so far was read; holds until it goes away.
    pub fn proven(&mut self) {
        self.proven_at_end = true;
    }

    /// For what is pushed to it now.
    pub fn absences(&self) -> Absences {
        self.absences
    }

    /// For what it pulls now.
    pub fn while_away(&self) -> Absences {
        Absences(self.absences.0.saturating_sub(1))
    }

    /// Whether what was sent after the device had been away `from` times and before it had been `to` times must have come.
    pub fn proves(&self, from: Absences, to: Absences) -> bool {
        from == to || (from.0 >= self.made_up.0.0 && to.0 <= self.made_up.1.0)
    }

    /// Likewise, up to the end.
    pub fn proves_to_end(&self, from: Absences) -> bool {
        self.proven_at_end && self.proves(from, self.absences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_makes_up_for_all_absences_but_that_before_traffic() {
        for (present, first) in [(true, 0), (false, 2)] {
            let mut attendance = Attendance::default();
            attendance.begin(present);
            attendance.away();
            attendance.away();
            let now = attendance.absences();
            assert!(!attendance.proves(Absences(first), now));
            attendance.made_up();
            assert!(attendance.proves(Absences(first), now));
            assert_eq!(attendance.proves(Absences(0), now), present);
            attendance.away();
            assert!(!attendance.proves(now, attendance.absences()), "it is away again");
            assert!(!attendance.proves_to_end(attendance.absences()), "it has not shown that it read all");
        }
    }
}
