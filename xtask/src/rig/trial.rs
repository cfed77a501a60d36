//! One run of a client against a fresh server, watched from its start to its end.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::process::{Process, Server, tail};
use super::procfs::{Seen, Watch};
use super::stage::{Course, Stage};
use super::summary::Summary;

/// How much longer than its traffic a run may take.
const BESIDE: Duration = Duration::from_secs(60);

/// Runs the generator with the scenario that `scenario` writes for the address of the server.
pub fn generator(
    stage: &Stage,
    name: &str,
    course: Course,
    scenario: impl FnOnce(&str) -> String,
) -> Result<(Seen, Summary), String> {
    let folder = stage.next_run(name)?;
    let server = Server::start(stage)?;
    let file = folder.join("scenario.toml");
    let text = scenario(&format!("ws://{}", server.address));
    fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let results = folder.join("results");
    let mut command = Command::new(stage.program("uproar"));
    command.arg("run").arg("--quiet").arg("--out").arg(&results).arg(&file);
    // Whatever the verdict is, it is a result.
    let seen = watch(&mut command, &server, course, &folder.join("output.txt"), &[0, 1, 3])?;
    Ok((seen, Summary::read(&results)?))
}

/// Runs a client to its end; an error when it ends with another code than those that are `good`.
pub fn watch(
    command: &mut Command,
    server: &Server,
    course: Course,
    output: &Path,
    good: &[i32],
) -> Result<Seen, String> {
    let mut client = Process::client(command, output)?;
    let watch = Watch::start(client.pid(), server.pid());
    let traffic = Duration::from_secs(u64::from(course.settle + course.hold));
    let ended = client.wait(traffic + BESIDE);
    let seen = watch.finish()?;
    match ended? {
        code if good.contains(&code) => Ok(seen),
        code => Err(format!("{command:?} ended with {code}:\n{}", tail(output))),
    }
}
