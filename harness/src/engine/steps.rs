//! The scripted steps of a run, on the conductor's own runtime: each begins at its moment and says when it began and how
//! it ended. None of them outlives the run.

use std::time::Instant;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::clock::RunClock;
use crate::record::{StepMark, StepRun};
use crate::scenario::Step;
use crate::shell::{self, End};
use crate::units::UnixNanos;

/// Characters of a step's output that are told.
const OUTPUT_CHARS: usize = 200;

/// How much of the steps is still wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    All,
    /// Those that have begun.
    Begun,
    Nothing,
}

#[derive(Debug)]
pub struct Steps {
    marks: mpsc::Receiver<StepMark>,
    tell: mpsc::Sender<StepMark>,
    wanted: watch::Sender<Wanted>,
    tasks: JoinSet<()>,
}

impl Steps {
    /// For as many steps, none of which waits yet.
    pub fn new(count: usize) -> Self {
        // Room for the begin and the end of each, so that no step waits for the conductor.
        let (tell, marks) = mpsc::channel(2 * count + 1);
        Self { marks, tell, wanted: watch::Sender::new(Wanted::All), tasks: JoinSet::new() }
    }

    /// Lets each of `steps` begin at its moment after `start`.
    pub fn schedule(&mut self, steps: &[Step], start: UnixNanos, clock: RunClock) {
        for step in steps {
            let at = clock.instant(start.plus(step.at));
            self.tasks.spawn(take(step.clone(), at, clock, self.tell.clone(), self.wanted.subscribe()));
        }
    }

    /// The next thing a step has to say; waits for ever when there is none. May be dropped before its end.
    pub async fn next(&mut self) -> StepMark {
        match self.marks.recv().await {
            Some(mark) => mark,
            None => std::future::pending().await,
        }
    }

    /// No further step begins.
    pub fn begin_no_more(&self) {
        self.wanted.send_replace(Wanted::Begun);
    }

    /// Ends the steps that still run; what was not yet told.
    pub async fn end(&mut self) -> Vec<StepMark> {
        self.wanted.send_replace(Wanted::Nothing);
        while self.tasks.join_next().await.is_some() {}
        std::iter::from_fn(|| self.marks.try_recv().ok()).collect()
    }
}

async fn take(
    step: Step,
    at: Instant,
    clock: RunClock,
    tell: mpsc::Sender<StepMark>,
    mut wanted: watch::Receiver<Wanted>,
) {
    tokio::select! {
        () = tokio::time::sleep_until(at.into()) => {}
        _ = wanted.wait_for(|wanted| *wanted > Wanted::All) => return,
    }
    let began = clock.elapsed();
    let _ = tell.send(StepMark::Began { at: began, name: step.name.clone(), command: step.run.clone() }).await;
    let stop = async { _ = wanted.wait_for(|wanted| *wanted == Wanted::Nothing).await };
    let ran = shell::run(&step.run, &[], step.timeout, stop).await;
    let run = StepRun {
        name: step.name,
        began,
        took: clock.elapsed() - began,
        exit_code: if let End::Exit(code) = ran.end { Some(code) } else { None },
        failure: (!ran.end.is_success()).then(|| ran.end.to_string()),
        output: (ran.stdout + &ran.stderr).trim().chars().take(OUTPUT_CHARS).collect(),
    };
    let _ = tell.send(StepMark::Ended(run)).await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn step(at_ms: u64, name: &str, run: &str) -> Step {
        Step {
            at: Duration::from_millis(at_ms),
            name: name.to_owned(),
            run: run.to_owned(),
            timeout: Duration::from_secs(20),
        }
    }

    fn scheduled(steps: &[Step]) -> Steps {
        let clock = RunClock::start();
        let mut all = Steps::new(steps.len());
        all.schedule(steps, clock.now(), clock);
        all
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_step_tells_when_it_began_and_how_it_ended() {
        let mut steps = scheduled(&[step(200, "second", "exit 3"), step(100, "first", "echo done")]);
        let mut told = Vec::new();
        for _ in 0..4 {
            told.push(steps.next().await);
        }
        let run_of = |name: &str| {
            told.iter().find_map(|mark| match mark {
                StepMark::Ended(run) if run.name == name => Some(run.clone()),
                _ => None,
            })
        };
        let (first, second) = (run_of("first").unwrap(), run_of("second").unwrap());
        assert!(matches!(&told[0], StepMark::Began { name, at, .. } if name == "first" && at.as_millis() >= 100));
        assert_eq!((first.exit_code, first.failure, first.output.as_str()), (Some(0), None, "done"));
        assert_eq!((second.exit_code, second.failure.as_deref()), (Some(3), Some("ended with exit code 3")));
        assert!(second.began.as_millis() >= 200);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn at_the_end_a_running_step_is_ended_and_a_later_one_never_begins() {
        let mut steps = scheduled(&[step(0, "long", "sleep 60"), step(60_000, "later", "true")]);
        assert!(matches!(steps.next().await, StepMark::Began { .. }));
        let rest = steps.end().await;
        let [StepMark::Ended(run)] = &rest[..] else { panic!("{rest:?}") };
        assert_eq!((run.name.as_str(), run.exit_code), ("long", None));
        assert!(run.failure.as_deref().is_some_and(|why| why.contains("still running")), "{run:?}");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn after_an_interrupt_no_step_begins_and_those_that_run_go_on() {
        let mut steps = scheduled(&[step(0, "first", "sleep 0.4; echo whole"), step(200, "second", "true")]);
        steps.next().await;
        steps.begin_no_more();
        let StepMark::Ended(run) = steps.next().await else { panic!("the second step began") };
        assert_eq!(run.output, "whole");
        assert!(steps.end().await.is_empty());
    }
}
